package main

import (
	"fmt"
	"os"
)

func progress(format string, values ...any) { fmt.Fprintf(os.Stderr, format+"\n", values...) }

func main() {
	f, err := findFolders()
	if err == nil {
		err = runTestServer(f, os.Args[2])
	}
	if err != nil {
		progress("%s", err)
		os.Exit(1)
	}
}
