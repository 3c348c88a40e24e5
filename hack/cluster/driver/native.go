package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// native is a cluster whose programs are processes of this machine. One node runs real pods.
type native struct {
	folders    folders
	reason     string
	kube       string // folder with the Kubernetes programs
	coredns    string
	pki        *pki
	kernel     kernelAbilities
	components components
}

// nativeComponents are the names for kill and start, in the order in which `down` ends them: first
// the kubelet, which would bring ended pods back; containerd, which removes pods, stays to the last.
var nativeComponents = []string{
	"kubelet", "proxy", "forwarder", "dns", "scheduler", "controller-manager", "apiserver", "etcd", "containerd",
}

func (n *native) up() error {
	progress("way: native, Kubernetes as processes of this machine (%s)", n.reason)
	progress("it needs root, takes 5 to 10 minutes the first time and seconds later; data is in %s, binaries are in %s", n.statePath(), n.folders.cache)
	if err := ensureNativeMachine(); err != nil {
		return err
	}
	unlock, err := n.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := n.prepare(); err != nil {
		return err
	}
	if err := n.ensureComponents(); err != nil {
		return err
	}
	if err := n.waitForNode(); err != nil {
		return err
	}
	progress("ready: eval \"$(hack/cluster/cluster.sh env)\" or hack/cluster/cluster.sh kubectl get pods -A")
	return nil
}

// lock keeps two commands from changing the cluster at once.
func (n *native) lock() (func(), error) {
	if err := os.MkdirAll(n.folders.state, 0o755); err != nil {
		return nil, err
	}
	return lockFile(filepath.Join(n.folders.state, "native.lock"))
}

func (n *native) statePath(elements ...string) string {
	return filepath.Join(append([]string{n.folders.state, "native"}, elements...)...)
}

// kubeconfig is the one of a component; people have theirs in adminKubeconfig.
func (n *native) kubeconfig(name string) string {
	return n.statePath("config", name+".kubeconfig")
}

func (n *native) adminKubeconfig() string { return n.statePath("kubeconfig") }

func (n *native) supervisor() components {
	return components{pidFolder: n.statePath("pids"), logFolder: n.statePath("logs")}
}

// prepare does everything that comes before the first process.
func (n *native) prepare() error {
	n.components = n.supervisor()
	if err := n.folders.noteWay("native"); err != nil {
		return err
	}
	if err := n.findBinaries(); err != nil {
		return err
	}
	if err := n.writeIdentities(); err != nil {
		return err
	}
	if err := n.writeContainerdScript(); err != nil {
		return err
	}
	if err := os.MkdirAll(n.folders.run, 0o755); err != nil {
		return err
	}
	return n.ensureNetwork()
}

func (n *native) findBinaries() error {
	var err error
	if n.kube, err = n.folders.kubeBinaries(); err != nil {
		return err
	}
	if n.coredns, err = n.folders.coredns(); err != nil {
		return err
	}
	_, err = n.folders.helm()
	return err
}

// writeIdentities makes all certificates and kubeconfigs that are not there yet.
func (n *native) writeIdentities() error {
	var err error
	if n.pki, err = openPKI(n.statePath("pki")); err != nil {
		return err
	}
	if err := n.pki.issueAll(controlPlaneSubjects()); err != nil {
		return err
	}
	server := fmt.Sprintf("https://127.0.0.1:%d", apiserverPort)
	for _, name := range []string{"controller-manager", "scheduler", "proxy", "dns", "node"} {
		if err := n.pki.writeKubeconfig(n.kubeconfig(name), server, name); err != nil {
			return err
		}
	}
	return n.pki.writeKubeconfig(n.adminKubeconfig(), server, "kubernetes-admin")
}

// ensureComponents starts what does not run. Programs of one step do not need each other.
func (n *native) ensureComponents() error {
	steps := []func() error{
		func() error { return inParallel(n.ensurer("containerd"), n.ensurer("etcd")) },
		func() error { return inParallel(n.ensurer("apiserver"), n.ensurePauseImage) },
		func() error {
			return inParallel(n.ensurer("controller-manager"), n.ensurer("scheduler"), n.ensurer("kubelet"), n.ensureAccessAndDNS)
		},
		n.waitForRegistration,
		n.ensurer("proxy"),
	}
	if !n.kernel.loopbackRouting {
		progress("this kernel does not route node ports to 127.0.0.1; a small forwarder does it")
		steps = append(steps, n.ensurer("forwarder"))
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (n *native) ensurer(name string) func() error {
	return func() error {
		program, err := n.component(name)
		if err != nil {
			return err
		}
		return n.components.ensure(program)
	}
}

// component returns the definition of a component by its name.
func (n *native) component(name string) (component, error) {
	switch name {
	case "etcd":
		return n.etcd(), nil
	case "apiserver":
		return n.apiserver(), nil
	case "controller-manager":
		return n.controllerManager(), nil
	case "scheduler":
		return n.scheduler(), nil
	case "containerd":
		return n.containerd()
	case "kubelet":
		return n.kubelet()
	case "proxy":
		return n.proxy()
	case "dns":
		return n.dns()
	case "forwarder":
		return n.forwarder()
	}
	return component{}, unknownComponent(name)
}

func unknownComponent(name string) error {
	return fmt.Errorf("no component %q; there are: %s", name, strings.Join(nativeComponents, " "))
}

func (n *native) ensurePauseImage() error {
	list := n.containerdClient("images", "ls", "-q", "name=="+pauseImage)
	names, err := exec.Command(list[0], list[1:]...).Output()
	if err != nil {
		return fmt.Errorf("ctr images ls: %w", describe(err))
	}
	if strings.TrimSpace(string(names)) != "" {
		return nil
	}
	archive, err := n.folders.pauseArchive()
	if err != nil {
		return err
	}
	return n.importImage(archive)
}

// ensureAccessAndDNS gives the rights before DNS starts, because CoreDNS retries only slowly
// without them.
func (n *native) ensureAccessAndDNS() error {
	apply := n.kubectl("apply", "-f", "-")
	apply.Stdin = strings.NewReader(accessRules)
	if output, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("apply the cluster's access rules: %w\n%s", err, output)
	}
	return n.ensurer("dns")()
}

func (n *native) kubectl(arguments ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(n.kube, "kubectl"), append([]string{"--kubeconfig", n.adminKubeconfig()}, arguments...)...)
	command.Env = programEnvironment()
	return command
}

// waitForRegistration waits for the Node object, from which kube-proxy takes the node's address.
func (n *native) waitForRegistration() error {
	return waitFor(func() error {
		if output, err := n.kubectl("get", "node", nodeName, "-o", "name").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	}, time.Minute, nil)
}

func (n *native) waitForNode() error {
	if output, err := n.kubectl("wait", "--for=condition=Ready", "node/"+nodeName, "--timeout=90s").CombinedOutput(); err != nil {
		return fmt.Errorf("the node is not Ready, see %s: %w\n%s", n.components.logFile("kubelet"), err, output)
	}
	return nil
}

// down ends the cluster's processes and containers. Its data stays for the next `up`.
func (n *native) down() error {
	unlock, err := n.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return n.downLocked()
}

func (n *native) downLocked() error {
	if _, err := os.Stat(n.statePath("pki")); errors.Is(err, os.ErrNotExist) {
		progress("there is no native cluster in %s", n.statePath())
		return nil
	}
	n.components = n.supervisor()
	for _, name := range nativeComponents {
		if name == "containerd" {
			if err := n.removePods(); err != nil {
				return err
			}
		}
		if err := n.components.stop(name); err != nil {
			return err
		}
	}
	if err := unmountBelow(n.statePath(), n.folders.run); err != nil {
		return err
	}
	if err := n.removeNetwork(); err != nil {
		return err
	}
	if err := os.RemoveAll(n.folders.run); err != nil {
		return err
	}
	progress("down; the data stays in %s (cluster.sh clean removes it)", n.statePath())
	return n.folders.forgetWay()
}

// removePods needs containerd, so one that has crashed is started again for it.
func (n *native) removePods() error {
	if _, err := os.Stat(n.folders.run); errors.Is(err, os.ErrNotExist) {
		return nil // nothing has run since the last `down` or reboot
	}
	var err error
	if n.kube, err = n.folders.kubeBinaries(); err != nil {
		return err
	}
	if err := n.ensurer("containerd")(); err != nil {
		return err
	}
	return execute(filepath.Join(n.kube, "cri-remove-pods"), "unix://"+n.containerdSocket())
}

// clean is down, and then nothing of the cluster is left but the cached binaries.
func (n *native) clean() error {
	unlock, err := n.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := n.downLocked(); err != nil {
		return err
	}
	return os.RemoveAll(n.statePath())
}

// status prints a line for each component and fails if one is missing.
func (n *native) status() error {
	n.components = n.supervisor()
	var missing []string
	for _, name := range nativeComponents {
		record := readRecord(n.components.pidFile(name))
		switch {
		case record.alive():
			fmt.Printf("%-20s running  pid %-8d %s\n", name, record.PID, n.components.logFile(name))
		case name != "forwarder": // it exists only where the kernel cannot do its work
			fmt.Printf("%-20s stopped               %s\n", name, n.components.logFile(name))
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not running: %s; cluster.sh up starts them", strings.Join(missing, " "))
	}
	var err error
	if n.kube, err = n.folders.kubeBinaries(); err != nil {
		return err
	}
	nodes, err := n.kubectl("get", "nodes", "-o", "wide").CombinedOutput()
	fmt.Print(string(nodes))
	return err
}

func (n *native) environment() (environment, error) {
	if _, err := os.Stat(n.adminKubeconfig()); err != nil {
		return environment{}, errors.New("there is no cluster yet; run: cluster.sh up")
	}
	if err := n.findBinaries(); err != nil {
		return environment{}, err
	}
	helm, err := n.folders.helm()
	if err != nil {
		return environment{}, err
	}
	return environment{
		way:        "native",
		kubeconfig: n.adminKubeconfig(),
		kubectl:    filepath.Join(n.kube, "kubectl"),
		helm:       helm,
		ctr:        n.containerdScript(),
	}, nil
}

func (n *native) load(archive string) error {
	started := time.Now()
	if err := n.importImage(archive); err != nil {
		return err
	}
	progress("loaded %s in %.1f s", archive, time.Since(started).Seconds())
	return nil
}

func (n *native) importImage(archive string) error {
	command := n.containerdClient("images", "import", archive)
	return execute(command[0], command[1:]...)
}

func (n *native) kill(name, signal string) error {
	if !slices.Contains(nativeComponents, name) {
		return unknownComponent(name)
	}
	signals := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT}
	number, known := signals[signal]
	if !known {
		return fmt.Errorf("signal %q is not one of KILL, TERM, STOP, CONT", signal)
	}
	return n.supervisor().signal(name, number)
}

func (n *native) start(name string) error {
	unlock, err := n.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := n.prepare(); err != nil {
		return err
	}
	return n.ensurer(name)()
}

// inParallel runs all and returns what went wrong.
func inParallel(tasks ...func() error) error {
	failures := make([]error, len(tasks))
	var waitGroup sync.WaitGroup
	for i, task := range tasks {
		waitGroup.Add(1)
		go func() {
			defer waitGroup.Done()
			failures[i] = task()
		}()
	}
	waitGroup.Wait()
	return errors.Join(failures...)
}
