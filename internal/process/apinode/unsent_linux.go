package apinode

import (
	"net"
	"syscall"
)

// notSentLowat is TCP_NOTSENT_LOWAT of linux/tcp.h: the kernel accepts no more bytes of a
// connection while unsentBytes wait to be sent.
const (
	notSentLowat = 25
	unsentBytes  = 16 << 10
)

// limitUnsent makes the kernel accept small pieces from a writer whose client is slow. By default
// the kernel accepts nothing until a third of its buffer is free. A client that reads a few KiB per
// second would look like one that does not read, see package live.
func limitUnsent(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return // the connection is closed
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat, unsentBytes)
	})
}
