// Command cluster starts and stops the local Kubernetes; cluster.sh builds and runs it.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const usage = `usage: cluster.sh COMMAND

  up                 start the cluster, or repair it; does nothing when all is well
  down               end its processes and containers; its data stays
  clean              down, and remove the data
  status             one line a component; fails when one is missing
  env                lines for eval: KUBECONFIG, KUBECTL, HELM, CTR, BOXWRIGHT_SERVICE_URL
  load FILE.tar      bring images (docker-archive or OCI layout) to the node
  kubectl ARGS...    kubectl for this cluster
  helm ARGS...       Helm for this cluster
  kill NAME [SIG]    end a component at once (SIG: KILL, TERM, STOP, CONT); native only
  start NAME         start a component that was ended; native only
  tools              lines for eval: KUBECTL, HELM; without any cluster
  apiserver DIR      etcd and an API server for tests, in the foreground, state in DIR, no root

CLUSTER=kind|native|current overrides the choice of the way. See README.md.`

// progress tells the person what is going on; standard output is kept for results.
func progress(format string, values ...any) { fmt.Fprintf(os.Stderr, format+"\n", values...) }

func main() {
	// The tools for networks are not on the path of every root shell.
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	if err := run(os.Args[1:]); err != nil {
		progress("cluster.sh: %s", err)
		os.Exit(1)
	}
}

// command is one word that cluster.sh understands.
type command struct {
	minimum, maximum int // number of arguments
	run              func(f folders, arguments []string) error
}

const unlimited = 1 << 20

var commands = map[string]command{
	"up":        {0, 0, withWay(func(w way, _ []string) error { return w.up() })},
	"down":      {0, 0, withWay(func(w way, _ []string) error { return w.down() })},
	"clean":     {0, 0, withWay(func(w way, _ []string) error { return w.clean() })},
	"status":    {0, 0, withWay(func(w way, _ []string) error { return w.status() })},
	"env":       {0, 0, withWay(printEnvironment)},
	"load":      {1, 1, withWay(loadArchive)},
	"kubectl":   {0, unlimited, withWay(becomeKubectl)},
	"helm":      {0, unlimited, withWay(becomeHelm)},
	"kill":      {1, 2, withWay(killComponent)},
	"start":     {1, 1, withWay(func(w way, arguments []string) error { return w.start(arguments[0]) })},
	"tools":     {0, 0, printTools},
	"apiserver": {1, 1, func(f folders, arguments []string) error { return runTestServer(f, arguments[0]) }},
	// The native cluster calls this one itself.
	"forward": {2, 2, func(_ folders, arguments []string) error { return forward(arguments[0], arguments[1]) }},
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New(usage)
	}
	if arguments[0] == "help" {
		fmt.Println(usage)
		return nil
	}
	chosen, known := commands[arguments[0]]
	rest := arguments[1:]
	if !known || len(rest) < chosen.minimum || len(rest) > chosen.maximum {
		return errors.New(usage)
	}
	f, err := findFolders()
	if err != nil {
		return err
	}
	return chosen.run(f, rest)
}

// withWay gives a command the cluster to work on.
func withWay(do func(w way, arguments []string) error) func(folders, []string) error {
	return func(f folders, arguments []string) error {
		w, err := f.chooseWay()
		if err != nil {
			return err
		}
		return do(w, arguments)
	}
}

func printEnvironment(w way, _ []string) error {
	e, err := w.environment()
	if err != nil {
		return err
	}
	e.print()
	return nil
}

// printTools is for those who bring their own API server: the same programs, and no cluster needed.
func printTools(f folders, _ []string) error {
	folder, err := f.kubeBinaries()
	if err != nil {
		return err
	}
	helm, err := f.helm()
	if err != nil {
		return err
	}
	exportLine("KUBECTL", filepath.Join(folder, "kubectl"))
	exportLine("HELM", helm)
	return nil
}

func loadArchive(w way, arguments []string) error {
	archive, err := filepath.Abs(arguments[0])
	if err != nil {
		return err
	}
	if _, err := os.Stat(archive); err != nil {
		return err
	}
	return w.load(archive)
}

func becomeKubectl(w way, arguments []string) error {
	e, err := w.environment()
	if err != nil {
		return err
	}
	return become(e.kubectl, arguments, e.kubeconfig)
}

func becomeHelm(w way, arguments []string) error {
	e, err := w.environment()
	if err != nil {
		return err
	}
	return become(e.helm, arguments, e.kubeconfig)
}

func killComponent(w way, arguments []string) error {
	signal := "KILL"
	if len(arguments) == 2 {
		signal = arguments[1]
	}
	return w.kill(arguments[0], signal)
}
