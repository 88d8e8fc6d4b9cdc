package devserver

import (
	"fmt"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

// freePorts finds n distinct free ports. They are free again when it returns, so
// another process may still take one: Temporal has no way to be handed a listener.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", hostPort(0))
		if err != nil {
			return nil, fmt.Errorf("devserver: find a free port: %w", err)
		}
		defer l.Close() // held until all are found, so that they differ
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// probePort turns "address already in use" into an error that names the flag,
// which the servers themselves would only log.
func probePort(server, flag string, port int) error {
	l, err := net.Listen("tcp", hostPort(port))
	if err != nil {
		return &PortError{Server: server, Flag: flag, Port: port, Err: err}
	}
	return l.Close()
}

func hostPort(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
