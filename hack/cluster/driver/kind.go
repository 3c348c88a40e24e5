package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// kind is a cluster whose node is a Docker container.
type kind struct {
	folders folders
	reason  string
}

// kindNode is the name that kind gives to the container.
const kindNode = clusterName + "-control-plane"

// kind itself already keeps the kubelet from evicting pods and removing images on a full disk.
const kindConfig = `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
  extraPortMappings:
  - {containerPort: %[1]d, hostPort: %[1]d, listenAddress: 127.0.0.1, protocol: TCP}
  kubeadmConfigPatches:
  - |
    kind: ClusterConfiguration
    controllerManager:
      extraArgs:
        kube-api-qps: "200"
        kube-api-burst: "400"
  - |
    kind: KubeletConfiguration
    maxPods: 200
    podPidsLimit: 1024
    serializeImagePulls: false
`

func (k *kind) up() error {
	progress("way: kind, a cluster in a Docker container (%s)", k.reason)
	exists, err := k.exists()
	if err != nil {
		return err
	}
	if err := k.folders.noteWay("kind"); err != nil {
		return err
	}
	if _, err := k.folders.helm(); err != nil {
		return err
	}
	if exists {
		// Starting a running container is harmless.
		if err := execute("docker", "start", kindNode); err != nil {
			return err
		}
		if err := k.run("export", "kubeconfig", "--name", clusterName, "--kubeconfig", k.kubeconfig()); err != nil {
			return err
		}
	} else {
		config := k.statePath("kind.yaml")
		if err := writeFile(config, fmt.Appendf(nil, kindConfig, servicePort), 0o644); err != nil {
			return err
		}
		if err := k.run("create", "cluster", "--name", clusterName, "--config", config, "--kubeconfig", k.kubeconfig()); err != nil {
			return err
		}
	}
	kubectl, err := k.folders.anyKubectl()
	if err != nil {
		return err
	}
	return execute(kubectl, "--kubeconfig", k.kubeconfig(), "wait", "--for=condition=Ready", "node", "--all", "--timeout=180s")
}

// down stops the node. Its data stays for the next `up`.
func (k *kind) down() error {
	exists, err := k.exists()
	if err != nil {
		return err
	}
	if exists {
		if err := execute("docker", "stop", kindNode); err != nil {
			return err
		}
	}
	return k.folders.forgetWay()
}

func (k *kind) clean() error {
	if err := k.run("delete", "cluster", "--name", clusterName, "--kubeconfig", k.kubeconfig()); err != nil {
		return err
	}
	if err := os.RemoveAll(k.statePath()); err != nil {
		return err
	}
	return k.folders.forgetWay()
}

func (k *kind) status() error {
	exists, err := k.exists()
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("no kind cluster named %s; run: cluster.sh up", clusterName)
	}
	kubectl, err := k.folders.anyKubectl()
	if err != nil {
		return err
	}
	return show(kubectl, "--kubeconfig", k.kubeconfig(), "get", "nodes", "-o", "wide")
}

func (k *kind) environment() (environment, error) {
	kubectl, err := k.folders.anyKubectl()
	if err != nil {
		return environment{}, err
	}
	helm, err := k.folders.helm()
	return environment{way: "kind", kubeconfig: k.kubeconfig(), kubectl: kubectl, helm: helm}, err
}

func (k *kind) load(archive string) error {
	return k.run("load", "image-archive", archive, "--name", clusterName)
}

func (k *kind) kill(string, string) error { return errFaultsNeedNative }
func (k *kind) start(string) error        { return errFaultsNeedNative }

func (k *kind) statePath(elements ...string) string {
	return filepath.Join(append([]string{k.folders.state, "kind"}, elements...)...)
}

func (k *kind) kubeconfig() string { return k.statePath("kubeconfig") }

func (k *kind) exists() (bool, error) {
	if !dockerAnswers() {
		return false, errors.New("Docker does not answer; start it, or use CLUSTER=native")
	}
	program, err := k.folders.kind()
	if err != nil {
		return false, err
	}
	names, err := exec.Command(program, "get", "clusters").Output()
	if err != nil {
		return false, fmt.Errorf("kind get clusters: %w", describe(err))
	}
	return slices.Contains(strings.Fields(string(names)), clusterName), nil
}

func (k *kind) run(arguments ...string) error {
	program, err := k.folders.kind()
	if err != nil {
		return err
	}
	return show(program, arguments...)
}
