package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// component is one long-running program of the native cluster.
type component struct {
	name      string // as used by the commands kill and start
	path      string
	arguments []string
	inputs    []string // files it reads at its start only; when one changes it is started again
	ready     probe
}

// components keeps pid files and logs of a set of programs.
type components struct {
	pidFolder string
	logFolder string
}

func (c components) pidFile(name string) string { return filepath.Join(c.pidFolder, name+".json") }
func (c components) logFile(name string) string { return filepath.Join(c.logFolder, name+".log") }
func (c components) alive(name string) bool     { return readRecord(c.pidFile(name)).alive() }

// ensure makes a component run with its present settings and waits until it is ready. What runs
// well is left alone, so that a second `up` changes nothing.
func (c components) ensure(program component) error {
	fingerprint, err := program.fingerprint()
	if err != nil {
		return err
	}
	if record := readRecord(c.pidFile(program.name)); record.alive() {
		reason := "its settings have changed"
		if record.Fingerprint == fingerprint {
			// A program that another one has just come back for may need a moment.
			err := waitFor(program.ready, 20*time.Second, nil)
			if err == nil {
				return nil
			}
			reason = err.Error()
		}
		progress("restarting %s: %s", program.name, reason)
		if err := record.stop(10 * time.Second); err != nil {
			return err
		}
	}
	return c.start(program, fingerprint)
}

func (c components) start(program component, fingerprint string) error {
	started := time.Now()
	logFile := c.logFile(program.name)
	command, exited, err := spawn(program.path, program.arguments, logFile, syscall.SysProcAttr{})
	if err != nil {
		return err
	}
	record, err := recordProcess(command.Process.Pid, fingerprint)
	if err == nil {
		if err = record.write(c.pidFile(program.name)); err != nil {
			_ = command.Process.Kill() // without a pid file nobody could end it later
			return err
		}
		err = waitFor(program.ready, 90*time.Second, exited)
	}
	if err != nil {
		return fmt.Errorf("%s did not start: %w; the end of %s:\n%s", program.name, err, logFile, lastLines(logFile, 10))
	}
	progress("started %s in %.1f s", program.name, time.Since(started).Seconds())
	return nil
}

// stop ends a component if it runs.
func (c components) stop(name string) error {
	if err := readRecord(c.pidFile(name)).stop(10 * time.Second); err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	return removeIfThere(c.pidFile(name))
}

// signal sends a signal to a running component; it is the fault injection of the tests.
func (c components) signal(name string, signal syscall.Signal) error {
	record := readRecord(c.pidFile(name))
	if !record.alive() {
		return fmt.Errorf("%s is not running", name)
	}
	if err := syscall.Kill(record.PID, signal); err != nil {
		return err
	}
	if signal == syscall.SIGKILL && !record.awaitEnd(10*time.Second) {
		return fmt.Errorf("%s did not end", name)
	}
	return nil
}

// fingerprint changes with everything that makes a restart necessary.
func (p component) fingerprint() (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, p.path, strings.Join(p.arguments, "\n"))
	for _, name := range p.inputs {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

func removeIfThere(name string) error {
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
