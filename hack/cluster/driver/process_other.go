//go:build !linux

package main

import "syscall"

// dieWithParent cannot be had here: a child stays behind when we are killed by force.
func dieWithParent() syscall.SysProcAttr {
	return syscall.SysProcAttr{}
}
