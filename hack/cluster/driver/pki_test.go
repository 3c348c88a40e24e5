package main

import (
	"os"
	"testing"
)

func TestIssueKeepsGoodCertificatesAndReplacesOthers(t *testing.T) {
	folder := t.TempDir()
	issue := func(holder subject) string {
		authority, err := openPKI(folder) // each time as a new process would
		if err != nil {
			t.Fatal(err)
		}
		if err := authority.issue("server", holder); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(authority.cert("server"))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	first := issue(subject{commonName: "a", hosts: []string{"127.0.0.1", "localhost"}})
	if issue(subject{commonName: "a", hosts: []string{"127.0.0.1", "localhost"}}) != first {
		t.Error("a good certificate was replaced")
	}
	if issue(subject{commonName: "a", hosts: []string{"127.0.0.2", "localhost"}}) == first {
		t.Error("a certificate for another address was kept")
	}
}
