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
// for outgoing connections and for ":0". Temporal accepts port numbers and no listeners, so a port
// that freePorts finds must still be free when Temporal listens on it.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

// freePorts returns n different ports of the range above on which no process listens.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range 100 * n {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // a guess, not a secret
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", hostPort(port))
		if err != nil {
			continue
		}
		defer l.Close() // held open until all are found, so that they differ
		ports = append(ports, port)
	}
	return nil, errors.New("devserver: no free ports on " + loopback)
}

// probePort checks that a port is free. Its error names the flag; the servers would only log a port
// that is in use.
func probePort(server, flag string, port int) error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", hostPort(port))
	if err != nil {
		return &PortError{Server: server, Flag: flag, Port: port, Err: err}
	}
	return l.Close()
}

func hostPort(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
