package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// kubePrograms are the names under which the one binary built from kube/ is called.
var kubePrograms = []string{
	"cri-remove-pods", "etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet",
}

// kubeBinaries returns a folder with the Kubernetes programs, building them when this version of
// the module is not in the cache yet.
func (f folders) kubeBinaries() (string, error) {
	files, err := filepath.Glob(filepath.Join(f.source, "kube", "*.go"))
	if err != nil {
		return "", err
	}
	files = append(files, filepath.Join(f.source, "go.mod"), filepath.Join(f.source, "go.sum"))
	key, err := hashFiles(files)
	if err != nil {
		return "", err
	}
	version, err := f.kubernetesVersion()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(f.cache, "kube-"+key)
	return folder, buildOnce(folder, "Kubernetes "+version+" (5 to 10 minutes on two cores, once)", func(target string) error {
		const versionPackage = "k8s.io/component-base/version"
		part := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
		flags := fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
			versionPackage, version, part[0], part[1])
		build := exec.Command("go", "build", "-v", "-buildvcs=false", "-ldflags", flags, "-o", filepath.Join(target, "kube"), "./kube")
		build.Dir = f.source
		if err := runGo(build); err != nil {
			return err
		}
		for _, name := range kubePrograms {
			if err := os.Symlink("kube", filepath.Join(target, name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// installed returns the path of a Go program at an exact version, installing it into the cache when
// it is not there yet. Further flags go to `go install`.
func (f folders) installed(program, goPackage, version string, flags ...string) (string, error) {
	folder := filepath.Join(f.cache, program+"-"+version)
	err := buildOnce(folder, program+" "+version+" (up to 3 minutes, once)", func(target string) error {
		arguments := append([]string{"install", "-v", "-buildvcs=false"}, flags...)
		install := exec.Command("go", append(arguments, goPackage+"@"+version)...)
		install.Env = append(os.Environ(), "GOBIN="+target)
		return runGo(install)
	})
	return filepath.Join(folder, program), err
}

func (f folders) helm() (string, error) {
	return f.installed("helm", "helm.sh/helm/v3/cmd/helm", helmVersion, "-ldflags", "-s -w -X helm.sh/helm/v3/internal/version.version="+helmVersion)
}

func (f folders) coredns() (string, error) {
	return f.installed("coredns", "github.com/coredns/coredns", corednsVersion, "-ldflags", "-s -w")
}

func (f folders) kind() (string, error) {
	return f.installed("kind", "sigs.k8s.io/kind", kindVersion, "-ldflags", "-s -w")
}

// buildOnce fills folder by calling build, unless it exists. The folder appears complete or not at
// all, and of several callers at once one builds while the others wait.
func buildOnce(folder, what string, build func(target string) error) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	// One lock for all builds: two Go builds at once take longer than one after the other.
	unlock, err := lockFile(filepath.Join(filepath.Dir(folder), "build.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	progress("building %s", what)
	unfinished := folder + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := os.MkdirAll(unfinished, 0o755); err != nil {
		return err
	}
	started := time.Now()
	if err := build(unfinished); err != nil {
		return fmt.Errorf("building %s: %w", what, err)
	}
	progress("built in %s", time.Since(started).Round(time.Second))
	return os.Rename(unfinished, folder)
}

// runGo runs a `go build -v` and reports every 10 seconds how many packages are done.
func runGo(build *exec.Cmd) error {
	if build.Env == nil {
		build.Env = os.Environ()
	}
	build.Env = append(build.Env, "CGO_ENABLED=0")
	build.Stdout = os.Stderr
	output, err := build.StderrPipe()
	if err != nil {
		return err
	}
	if err := build.Start(); err != nil {
		return err
	}
	var mutex sync.Mutex
	var lines []string
	started := time.Now()
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		for {
			select {
			case <-ticker.C:
				mutex.Lock()
				progress("  %s: %d packages done", time.Since(started).Round(time.Second), len(lines))
				mutex.Unlock()
			case <-finished:
				return
			}
		}
	}()
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		mutex.Lock()
		lines = append(lines, scanner.Text())
		mutex.Unlock()
	}
	if err := build.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
	return nil
}

// hashFiles returns a short name for the content of files.
func hashFiles(files []string) (string, error) {
	sort.Strings(files)
	sum := sha256.New()
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(sum, file)
		file.Close()
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// lockFile waits until this process alone holds the lock; the returned function gives it back.
func lockFile(name string) (func(), error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}
