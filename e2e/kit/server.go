package kit

import (
	"net"
	"os"
	"strconv"
	"testing"
	"time"
)

// OutageLength is how long an outage of a server lasts: 10 s, or the value of E2E_OUTAGE.
var OutageLength = func() time.Duration {
	d, err := time.ParseDuration(os.Getenv("E2E_OUTAGE"))
	if err != nil {
		return 10 * time.Second
	}
	return d
}()

// Server is a server process of a cluster that tests can stop, restart and freeze.
type Server struct {
	*Process
	Args []string
	// launch starts the server on the same data and port.
	launch func(t *testing.T) *Process
}

// Start starts the server, or restarts it.
func (s *Server) Start(t *testing.T) {
	t.Helper()
	s.Process = s.launch(t)
}

// natsPasswords are the passwords of the users in the deployed configuration of NATS.
var natsPasswords = []string{"NATS_ADMIN_PASSWORD=" + NATSPassword, "NATS_API_PASSWORD=" + NATSPassword, "NATS_WORKER_PASSWORD=" + NATSPassword}

// NATSPassword is the password of each user of a cluster's NATS: perdure-admin, perdure-api and
// perdure-worker.
const NATSPassword = "password-of-tests"

// listens reports whether a port is free.
func listens(t *testing.T, port int) bool {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
