package main

import (
	"io"
	"net"
)

// forward copies TCP connections from one address to another until it is ended.
func forward(from, to string) error {
	listener, err := net.Listen("tcp", from)
	if err != nil {
		return err
	}
	for {
		near, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer near.Close()
			far, err := net.Dial("tcp", to)
			if err != nil {
				progress("%s", err)
				return
			}
			defer far.Close()
			join(near.(*net.TCPConn), far.(*net.TCPConn))
		}()
	}
}

// join copies both ways. The end of one way is passed on while the other may still carry an answer.
func join(near, far *net.TCPConn) {
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.CloseWrite()
		close(done)
	}()
	_, _ = io.Copy(near, far)
	_ = near.CloseWrite()
	<-done
}
