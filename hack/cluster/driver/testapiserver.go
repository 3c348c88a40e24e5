package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// testServer is an etcd and an API server for integration tests: no nodes, no controllers, no root.
type testServer struct {
	folder   string // everything it writes is in here
	binaries string
	pki      *pki
	children []child // in the order of their start
}

type child struct {
	name    string
	command *exec.Cmd
	exited  <-chan struct{}
}

// runTestServer serves from folder until it is told to stop: by a signal, or by the end of standard
// input, so that the servers of a test that died do not stay behind.
func runTestServer(f folders, folder string) error {
	// The kernel kills the children when the thread that started them ends; the main thread never does.
	runtime.LockOSThread()
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	binaries, err := f.kubeBinaries()
	if err != nil {
		return err
	}
	stop := stopRequests() // not earlier: a build is ended by the signal itself
	server := &testServer{folder: folder, binaries: binaries}
	defer server.stop()
	if err := server.start(stop); err != nil {
		return err
	}
	fmt.Printf("ready kubeconfig=%s\n", server.kubeconfig())

	select {
	case <-stop:
		return nil
	case <-server.children[0].exited:
	case <-server.children[1].exited:
	}
	return errors.New("etcd or the API server has died, see the logs in " + folder)
}

// stopRequests returns a channel that is closed when we shall stop.
func stopRequests() <-chan struct{} {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	inputEnded := make(chan struct{})
	// A terminal or /dev/null is no partner that could go away.
	if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice == 0 {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			close(inputEnded)
		}()
	}
	stop := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-inputEnded:
		}
		close(stop)
	}()
	return stop
}

func (s *testServer) kubeconfig() string { return filepath.Join(s.folder, "kubeconfig") }

// start tries again with other ports, because a free port can be taken by somebody else between
// our look and the start of the program.
func (s *testServer) start(stop <-chan struct{}) error {
	if err := os.MkdirAll(s.folder, 0o755); err != nil {
		return err
	}
	var err error
	if s.pki, err = openPKI(filepath.Join(s.folder, "pki")); err != nil {
		return err
	}
	if err := s.pki.issueAll(apiserverSubjects()); err != nil {
		return err
	}
	for range 3 {
		if err = s.startOnce(); err == nil {
			return nil
		}
		s.stop()
		select {
		case <-stop:
			return err
		default:
		}
	}
	return err
}

func (s *testServer) startOnce() error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	// The data is thrown away after the test, so it need not be safe on the disk.
	etcd := append(etcdArguments(s.pki, filepath.Join(s.folder, "etcd"), ports[0], ports[1]), "--unsafe-no-fsync")
	if err := s.startChild("etcd", etcd, etcdProbe(s.pki, ports[0])); err != nil {
		return err
	}
	apiserver := apiserverArguments(apiserverSettings{
		pki:         s.pki,
		etcdURL:     fmt.Sprintf("https://127.0.0.1:%d", ports[0]),
		bindAddress: "127.0.0.1",
		advertise:   "127.0.0.1",
		port:        ports[2],
		extra: []string{
			"--endpoint-reconciler-type=none", // there are no pods to tell our address
			// Nobody makes the service account "default" of a new namespace here.
			"--disable-admission-plugins=ServiceAccount",
		},
	})
	if err := s.startChild("kube-apiserver", apiserver, apiserverProbe(s.pki, ports[2])); err != nil {
		return err
	}
	return s.pki.writeKubeconfig(s.kubeconfig(), fmt.Sprintf("https://127.0.0.1:%d", ports[2]), "kubernetes-admin")
}

func (s *testServer) startChild(name string, arguments []string, ready probe) error {
	logFile := filepath.Join(s.folder, name+".log")
	command, exited, err := spawn(filepath.Join(s.binaries, name), arguments, logFile, dieWithParent())
	if err != nil {
		return err
	}
	s.children = append(s.children, child{name: name, command: command, exited: exited})
	if err := waitFor(ready, time.Minute, exited); err != nil {
		return fmt.Errorf("%s: %w; the end of %s:\n%s", name, err, logFile, lastLines(logFile, 10))
	}
	return nil
}

// stop ends the API server before the etcd that it uses.
func (s *testServer) stop() {
	for i := len(s.children) - 1; i >= 0; i-- {
		child := s.children[i]
		_ = child.command.Process.Signal(syscall.SIGTERM) // it may have exited
		select {
		case <-child.exited:
		case <-time.After(10 * time.Second):
			_ = child.command.Process.Kill()
			<-child.exited
		}
	}
	s.children = nil
}

// freePorts asks the kernel for ports that nobody listens on.
func freePorts(count int) ([]int, error) {
	var ports []int
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close() // all stay open until the last is found, so that they differ
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
