package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// debianPackages says which package brings a program that the native way and its image build use.
var debianPackages = []struct{ program, name string }{
	{"/usr/bin/containerd", "containerd"},
	{"/usr/sbin/runc", "runc"},
	{"/usr/lib/cni/bridge", "containernetworking-plugins"},
	{"/usr/sbin/iptables", "iptables"},
	{"/usr/sbin/conntrack", "conntrack"},
	{"/bin/ip", "iproute2"},
	{"/usr/bin/buildah", "buildah"},
	{"/usr/bin/mmdebstrap", "mmdebstrap"},
}

// ensureNativeMachine checks that this machine can carry the native way, and installs what is missing.
func ensureNativeMachine() error {
	var missing []string
	for _, entry := range debianPackages {
		if _, err := os.Stat(entry.program); err != nil {
			missing = append(missing, entry.name)
		}
	}
	if len(missing) > 0 {
		if err := installPackages(missing); err != nil {
			return err
		}
	}
	if os.Geteuid() != 0 {
		return errors.New("the native cluster needs root for containers and iptables: use sudo -E, or start Docker to get one with kind")
	}
	return nil
}

func installPackages(names []string) error {
	arguments := append([]string{"install", "-y", "--no-install-recommends"}, names...)
	line := "apt-get " + strings.Join(arguments, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("please install what these Debian packages hold: %s", strings.Join(names, " "))
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("packages are missing, please run: sudo %s", line)
	}
	progress("installing Debian packages: %s", strings.Join(names, " "))
	if aptGet(arguments...) == nil {
		return nil
	}
	// A fresh machine has no package lists yet, an old one has lists of packages that are gone.
	if err := aptGet("update"); err != nil {
		return err
	}
	return aptGet(arguments...)
}

func aptGet(arguments ...string) error {
	command := exec.Command("apt-get", arguments...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(arguments, " "), err, output)
	}
	return nil
}
