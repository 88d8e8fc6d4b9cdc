package devserver

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

// Ports of Temporal's internal services are below the range from which operating systems take ports
// for outgoing connections and for ":0".
const (
	firstPort = 20_000
	lastPort  = 32_000

	// blockSize is the number of ports in a portBlock: its guard and one for each of Temporal's
	// services.
	blockSize = 5
)

// portBlock is a range of blockSize ports that belongs to one server. Temporal accepts port numbers
// and no listeners, so its ports are free until it listens on them. A listener on the first port of
// the block keeps other servers out: all servers, also those of other processes, look for a block
// by listening on its first port.
type portBlock struct {
	guard net.Listener
	first int // the port of guard
}

// reservePorts returns a block on whose ports no process listens. The caller calls release when no
// server uses the ports anymore.
func reservePorts() (*portBlock, error) {
	const blocks = (lastPort - firstPort) / blockSize
	start := rand.IntN(blocks) //nolint:gosec // a guess, not a secret
	for i := range blocks {
		first := firstPort + (start+i)%blocks*blockSize
		guard, err := listen(first)
		if err != nil {
			continue
		}
		b := &portBlock{guard: guard, first: first}
		if b.free() {
			return b, nil
		}
		b.release()
	}
	return nil, errors.New("devserver: no free ports on " + loopback)
}

// free reports whether no process listens on the ports of the block after that of the guard.
func (b *portBlock) free() bool {
	for i := 1; i < blockSize; i++ {
		l, err := listen(b.first + i)
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// port returns a port of the block. i is 1 to blockSize-1.
func (b *portBlock) port(i int) int { return b.first + i }

// release gives the block to other servers.
func (b *portBlock) release() { b.guard.Close() }

// probePort checks that a port is free. Its error names the flag; the servers would only log a port
// that is in use.
func probePort(server, flag string, port int) error {
	l, err := listen(port)
	if err != nil {
		return &PortError{Server: server, Flag: flag, Port: port, Err: err}
	}
	return l.Close()
}

func listen(port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", hostPort(port))
}

func hostPort(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
