// Command cluster starts and stops the local Kubernetes; cluster.sh builds and runs it.
package main

import (
	"errors"
	"fmt"
	"os"
)

// progress tells the person what is going on; standard output is kept for results.
func progress(format string, values ...any) { fmt.Fprintf(os.Stderr, format+"\n", values...) }

func main() {
	if err := run(os.Args[1:]); err != nil {
		progress("cluster.sh: %s", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	f, err := findFolders()
	if err != nil {
		return err
	}
	if len(arguments) == 2 && arguments[0] == "apiserver" {
		return runTestServer(f, arguments[1])
	}
	return errors.New("usage: cluster.sh apiserver DIR")
}
