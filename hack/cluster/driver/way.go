package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// way is one manner of having a cluster.
type way interface {
	up() error
	down() error
	clean() error
	status() error
	environment() (environment, error)
	load(archive string) error
	kill(component, signal string) error
	start(component string) error
}

// environment tells other programs how to reach the cluster.
type environment struct {
	way        string
	kubeconfig string
	kubectl    string
	helm       string
	ctr        string // empty where there is no containerd of ours
}

// print writes lines for the shell's eval.
func (e environment) print() {
	for _, entry := range [][2]string{
		{"BOXWRIGHT_CLUSTER", e.way},
		{"KUBECONFIG", e.kubeconfig},
		{"KUBECTL", e.kubectl},
		{"HELM", e.helm},
		{"CTR", e.ctr},
		{"BOXWRIGHT_SERVICE_URL", fmt.Sprintf("http://127.0.0.1:%d", servicePort)},
	} {
		exportLine(entry[0], entry[1])
	}
}

// exportLine writes one line for the shell's eval.
func exportLine(name, value string) {
	fmt.Printf("export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
}

// chooseWay follows the variable CLUSTER, else the choice that `up` has noted, else the machine.
func (f folders) chooseWay() (way, error) {
	name, reason := os.Getenv("CLUSTER"), "CLUSTER says so"
	if name == "" {
		if noted, err := os.ReadFile(f.wayFile()); err == nil {
			name, reason = strings.TrimSpace(string(noted)), "it was chosen before; CLUSTER=kind|native|current overrides"
		} else if dockerAnswers() {
			name, reason = "kind", "Docker answers; CLUSTER=native|current overrides"
		} else {
			name, reason = "native", "Docker does not answer; CLUSTER=kind|current overrides"
		}
	}
	switch name {
	case "kind":
		return &kind{folders: f, reason: reason}, nil
	case "native":
		return &native{folders: f, reason: reason}, nil
	case "current":
		return &current{folders: f, reason: reason}, nil
	}
	return nil, fmt.Errorf("CLUSTER=%s is not one of kind, native, current", name)
}

// wayFile notes how the cluster was made, so that `down` finds it even when Docker has been
// started or stopped in between.
func (f folders) wayFile() string { return filepath.Join(f.state, "way") }

// noteWay refuses a second cluster beside the first: both would want the service port.
func (f folders) noteWay(name string) error {
	if noted, err := os.ReadFile(f.wayFile()); err == nil && strings.TrimSpace(string(noted)) != name {
		other := strings.TrimSpace(string(noted))
		return fmt.Errorf("there is a %s cluster already; first run: CLUSTER=%s hack/cluster/cluster.sh down", other, other)
	}
	return writeFile(f.wayFile(), []byte(name+"\n"), 0o644)
}

func (f folders) forgetWay() error { return removeIfThere(f.wayFile()) }

func dockerAnswers() bool {
	command := exec.Command("docker", "info")
	if command.Start() != nil {
		return false
	}
	// A daemon that hangs is none.
	timer := time.AfterFunc(10*time.Second, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	return command.Wait() == nil
}

// anyKubectl prefers the person's own kubectl; where there is none, ours is built.
func (f folders) anyKubectl() (string, error) {
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path, nil
	}
	folder, err := f.kubeBinaries()
	return filepath.Join(folder, "kubectl"), err
}

var errFaultsNeedNative = errors.New("stopping single components works on the native cluster only (CLUSTER=native)")
