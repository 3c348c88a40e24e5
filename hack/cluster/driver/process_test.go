package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestRecordNoticesTheEndOfAProcess(t *testing.T) {
	command, exited, err := spawn("/bin/sleep", []string{"60"}, filepath.Join(t.TempDir(), "log"), syscall.SysProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	record, err := recordProcess(command.Process.Pid, "")
	if err != nil {
		t.Fatal(err)
	}
	if !record.alive() {
		t.Error("a running process is taken for dead")
	}
	if err := record.stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	<-exited
	if record.alive() {
		t.Error("an ended process is taken for alive")
	}
}

func TestRecordIsNotFooledByAReusedNumber(t *testing.T) {
	record, err := recordProcess(os.Getpid(), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]processRecord{
		"another start": {PID: record.PID, StartTime: "1", Boot: record.Boot},
		"another boot":  {PID: record.PID, StartTime: record.StartTime, Boot: "other"},
		"no process":    {},
	} {
		if other.alive() {
			t.Errorf("%s: taken for ours", name)
		}
	}
}

func TestZombieCountsAsEnded(t *testing.T) {
	command := exec.Command("/bin/true")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Wait() }() // until then it stays a zombie
	ended := func() error {
		_, err := startTime(command.Process.Pid)
		if err == nil {
			return syscall.EBUSY
		}
		return nil
	}
	if err := waitFor(ended, 5*time.Second, nil); err != nil {
		t.Error("a zombie is taken for alive")
	}
}
