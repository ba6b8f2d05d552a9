package kelp

// #include "bridge.h"
import "C"

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Serve serves a connection that was accepted. It takes the connection over, also when it fails:
// do not use it afterwards.
func (e *Engine) Serve(conn *net.TCPConn) error {
	fd, err := take(conn)
	if err != nil {
		return fmt.Errorf("kelp: take over a connection: %w", err)
	}
	return e.hand(fd, "serve a connection", func(engine *C.kelp_engine) C.kelp_status {
		return C.kelp_engine_serve(engine, C.int32_t(fd))
	})
}

// ServeListener accepts and serves the connections of a listener until the engine stops. It takes
// the listener over, also when it fails: do not use it afterwards. It is faster than to accept in
// Go and Serve each connection.
func (e *Engine) ServeListener(listener *net.TCPListener) error {
	fd, err := take(listener)
	if err != nil {
		return fmt.Errorf("kelp: take over a listener: %w", err)
	}
	return e.hand(fd, "serve a listener", func(engine *C.kelp_engine) C.kelp_status {
		return C.kelp_engine_serve_listener(engine, C.int32_t(fd))
	})
}

// hand gives a descriptor to the engine, which owns it from then on whatever it answers.
func (e *Engine) hand(fd int, what string, call func(*C.kelp_engine) C.kelp_status) error {
	given := false
	err := e.call(what, func(engine *C.kelp_engine) C.kelp_status {
		given = true
		return call(engine)
	})
	if !given {
		syscall.Close(fd)
	}
	return err
}

type socket interface {
	syscall.Conn
	io.Closer
}

// take gives a descriptor of a socket that is Go's no more. Go's own is duplicated first and
// closed then: while it is open, the peer does not see that the engine closes. (File().Fd() would
// make the socket block, in both.)
func take(s socket) (int, error) {
	defer s.Close()
	raw, err := s.SyscallConn()
	if err != nil {
		return -1, err
	}
	var fd uintptr
	var errno syscall.Errno
	err = raw.Control(func(own uintptr) {
		fd, _, errno = syscall.Syscall(syscall.SYS_FCNTL, own, syscall.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil && errno != 0 {
		err = os.NewSyscallError("fcntl", errno)
	}
	return int(fd), err
}
