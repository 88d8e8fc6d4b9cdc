package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// watchers are any number of viewers, all read by the goroutine that calls watch: thousands of
// goroutines or threads would use CPU time that the measured system needs.
type watchers struct {
	// seen, if set, is called with each event.
	seen func(v *viewer, at int64)

	address unix.SockaddrInet4
	poll    int
	buffer  []byte
	reading map[int]*viewer // by file descriptor
	asking  int             // number of viewers without an answer
	ready   []unix.EpollEvent
}

// narrowBytes is the receive buffer of a viewer that will stop reading. It is small, so that the
// kernel does not read in the viewer's place.
const narrowBytes = 8 << 10

// newWatchers returns watchers of a system without a viewer. The caller closes it.
func newWatchers(base string) (*watchers, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	addr, err := netip.ParseAddrPort(u.Host)
	if err != nil {
		return nil, err
	}
	w := &watchers{
		address: unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}, reading: map[int]*viewer{},
		buffer: make([]byte, 256<<10), ready: make([]unix.EpollEvent, 256),
	}
	if w.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return w, nil
}

// close ends all connections.
func (w *watchers) close() {
	for fd := range w.reading {
		_ = unix.Close(fd)
	}
	_ = unix.Close(w.poll)
}

// open connects a viewer and sends its request.
func (w *watchers) open(v *viewer) (err error) {
	if v.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return os.NewSyscallError("socket", err)
	}
	w.reading[v.fd] = v
	w.asking++
	v.cut, v.scan.started = false, micros()
	v.scan.since = v.scan.started
	if v.narrow {
		if err := unix.SetsockoptInt(v.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, narrowBytes); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
	}
	if err := unix.Connect(v.fd, &w.address); err != nil {
		return os.NewSyscallError("connect", err)
	}
	for request := v.ask(v.last); len(request) > 0; {
		n, err := unix.Write(v.fd, request)
		if err != nil {
			return os.NewSyscallError("write", err)
		}
		request = request[n:]
	}
	if err := unix.SetNonblock(v.fd, true); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	return w.listen(v)
}

// listen makes a viewer read, like a new viewer.
func (w *watchers) listen(v *viewer) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(v.fd)} //nolint:gosec // descriptors are small
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(w.poll, unix.EPOLL_CTL_ADD, v.fd, &event))
}

// deafen makes a viewer stop reading until listen.
func (w *watchers) deafen(v *viewer) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(w.poll, unix.EPOLL_CTL_DEL, v.fd, nil))
}

// moment is how long watch waits for data before it calls done again.
const moment = 20 * time.Millisecond

// watch reads for all viewers until done returns true.
func (w *watchers) watch(ctx context.Context, done func() (bool, error)) error {
	for {
		if over, err := done(); over || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := unix.EpollWait(w.poll, w.ready, int(moment.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("epoll_wait", err)
		}
		for _, e := range w.ready[:max(n, 0)] {
			if err := w.read(w.reading[int(e.Fd)]); err != nil {
				return err
			}
		}
	}
}

// watchFor reads for all viewers for the given time.
func (w *watchers) watchFor(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	return w.watch(ctx, func() (bool, error) { return time.Now().After(end), nil })
}

// read reads what a viewer has received. At the end of its connection, the viewer stops reading.
func (w *watchers) read(v *viewer) error {
	n, err := unix.Read(v.fd, w.buffer)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return nil
	case err != nil && !errors.Is(err, unix.ECONNRESET):
		return os.NewSyscallError("read", err)
	case n > 0:
		if !v.answered {
			w.asking--
		}
		return v.take(w.buffer[:n], micros(), w.seen)
	case !v.answered:
		return fmt.Errorf("%w: no answer", errRun)
	}
	delete(w.reading, v.fd)
	v.closed()
	return os.NewSyscallError("close", unix.Close(v.fd))
}

// openAll connects viewers, at most one per pause and no faster than they are answered. It reads
// for the connected viewers meanwhile.
func (w *watchers) openAll(ctx context.Context, viewers []*viewer, pause time.Duration) error {
	const asking = 64
	begun, opened := time.Now(), 0
	return w.watch(ctx, func() (bool, error) {
		for opened < len(viewers) && w.asking < asking && time.Since(begun) >= time.Duration(opened)*pause {
			if err := w.open(viewers[opened]); err != nil {
				return false, err
			}
			opened++
		}
		return opened == len(viewers) && w.asking == 0, nil
	})
}
