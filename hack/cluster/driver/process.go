package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// spawn starts a program in a session of its own, so that neither a closing terminal nor Ctrl-C
// reaches it, with its output appended to a log file. The channel is closed when it exits.
func spawn(path string, arguments []string, logFile string, attributes syscall.SysProcAttr) (*exec.Cmd, <-chan struct{}, error) {
	if err := os.MkdirAll(filepath.Dir(logFile), 0o755); err != nil {
		return nil, nil, err
	}
	if err := rotateLog(logFile); err != nil {
		return nil, nil, err
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	command := exec.Command(path, arguments...)
	command.Dir = "/"
	command.Stdout = log
	command.Stderr = log
	command.Env = programEnvironment()
	attributes.Setsid = true
	command.SysProcAttr = &attributes
	if err := command.Start(); err != nil {
		return nil, nil, err
	}
	exited := make(chan struct{})
	go func() {
		// How it ended is in its log; here only the fact counts.
		_ = command.Wait()
		close(exited)
	}()
	return command, exited, nil
}

// dieWithParent makes the kernel kill a child when we die without the chance to stop it.
func dieWithParent() syscall.SysProcAttr {
	return syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// programEnvironment is ours without proxies: every address that the cluster's programs call is on
// this machine, which a proxy cannot reach.
func programEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"http_proxy", "https_proxy", "all_proxy"}, strings.ToLower(name))
	})
}

// rotateLog keeps one older log, so that a long-lived cluster does not fill the disk.
func rotateLog(logFile string) error {
	info, err := os.Stat(logFile)
	if err != nil || info.Size() < 50<<20 {
		return nil
	}
	return os.Rename(logFile, logFile+".1")
}

// lastLines returns the end of a log for an error message.
func lastLines(logFile string, count int) string {
	content, err := os.ReadFile(logFile)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

// processRecord is the content of a pid file. The start time and the boot make it certain that the
// process of that number is still the one that was started.
type processRecord struct {
	PID         int    `json:"pid"`
	StartTime   string `json:"startTime"`
	Boot        string `json:"boot"`
	Fingerprint string `json:"fingerprint"` // of the settings it was started with
}

// recordProcess describes a process that has just been started.
func recordProcess(pid int, fingerprint string) (processRecord, error) {
	startTime, err := startTime(pid)
	if err != nil {
		return processRecord{}, err
	}
	boot, err := bootID()
	return processRecord{PID: pid, StartTime: startTime, Boot: boot, Fingerprint: fingerprint}, err
}

// readRecord returns an empty record when there is no pid file or none that can be read.
func readRecord(file string) processRecord {
	var record processRecord
	if content, err := os.ReadFile(file); err == nil {
		if json.Unmarshal(content, &record) != nil {
			return processRecord{}
		}
	}
	return record
}

func (r processRecord) write(file string) error {
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeFile(file, append(content, '\n'), 0o644)
}

// alive says whether exactly this process is still there.
func (r processRecord) alive() bool {
	if r.PID <= 0 {
		return false
	}
	if boot, err := bootID(); err != nil || boot != r.Boot {
		return false
	}
	now, err := startTime(r.PID)
	return err == nil && now == r.StartTime
}

// stop ends the process: politely first, then by force.
func (r processRecord) stop(patience time.Duration) error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if !r.alive() {
			return nil
		}
		if err := syscall.Kill(r.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		if r.awaitEnd(patience) {
			return nil
		}
	}
	return fmt.Errorf("process %d does not end", r.PID)
}

func (r processRecord) awaitEnd(patience time.Duration) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if !r.alive() {
			return true
		}
	}
	return false
}

// startTime returns when a process started, in the kernel's ticks since boot. A process that has
// ended and only waits to be collected counts as gone.
func startTime(pid int) (string, error) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	// The second field is a name in brackets that may contain spaces; what follows it is regular.
	text := string(content)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fields[19], nil
}

func bootID() (string, error) {
	content, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(content)), err
}
