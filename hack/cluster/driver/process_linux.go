package main

import "syscall"

// dieWithParent makes the kernel kill a child when we die without the chance to stop it.
func dieWithParent() syscall.SysProcAttr {
	return syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
