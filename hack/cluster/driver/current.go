package main

import (
	"errors"
	"os"
	"path/filepath"
)

// current is the cluster that the person's own kubeconfig points at. We use it and never change it.
type current struct {
	folders folders
	reason  string
}

// up notes nothing: the choice of somebody's own cluster holds for one command.
func (c *current) up() error {
	progress("way: current, the cluster of your kubeconfig (%s)", c.reason)
	if _, err := c.folders.helm(); err != nil {
		return err
	}
	return c.status()
}

func (c *current) down() error {
	progress("the cluster of your kubeconfig is not ours and stays as it is")
	return nil
}

func (c *current) clean() error { return c.down() }

func (c *current) status() error {
	kubectl, err := c.folders.anyKubectl()
	if err != nil {
		return err
	}
	return show(kubectl, "get", "nodes", "-o", "wide")
}

func (c *current) environment() (environment, error) {
	kubectl, err := c.folders.anyKubectl()
	if err != nil {
		return environment{}, err
	}
	helm, err := c.folders.helm()
	return environment{way: "current", kubeconfig: currentKubeconfig(), kubectl: kubectl, helm: helm}, err
}

// currentKubeconfig is where kubectl would look.
func currentKubeconfig() string {
	if file := os.Getenv("KUBECONFIG"); file != "" {
		return file
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".kube", "config")
}

func (c *current) load(archive string) error {
	return errors.New("the nodes of your own cluster take images from a registry: push " + archive +
		" to one that they can reach (for example with skopeo copy docker-archive:" + archive + " docker://REGISTRY/NAME:TAG) and name it in the Helm values")
}

func (c *current) kill(string, string) error { return errFaultsNeedNative }
func (c *current) start(string) error        { return errFaultsNeedNative }
