package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// execute runs a command and shows its output only when it fails.
func execute(name string, arguments ...string) error {
	output, err := exec.Command(name, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}

// show runs a command whose output is of interest to the person.
func show(name string, arguments ...string) error {
	command := exec.Command(name, arguments...)
	command.Stdout = os.Stderr
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(arguments, " "), err)
	}
	return nil
}

// become replaces this program by another one that works on the cluster of a kubeconfig.
func become(path string, arguments []string, kubeconfig string) error {
	environment := append(os.Environ(), "KUBECONFIG="+kubeconfig)
	return syscall.Exec(path, append([]string{path}, arguments...), environment)
}

// describe adds what a command wrote to standard error.
func describe(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
