package devserver

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

// Ports for internal use come from below the range from which systems hand out
// ports for outgoing connections and ":0": Temporal cannot be handed a listener,
// and what is free now must still be free when it gets there.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

// freePorts finds n distinct ports on which nobody listens.
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
		defer l.Close() // held until all are found, so that they differ
		ports = append(ports, port)
	}
	return nil, errors.New("devserver: no free ports on " + loopback)
}

// probePort turns "address already in use" into an error that names the flag,
// which the servers themselves would only log.
func probePort(server, flag string, port int) error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", hostPort(port))
	if err != nil {
		return &PortError{Server: server, Flag: flag, Port: port, Err: err}
	}
	return l.Close()
}

func hostPort(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
