package e2e

import (
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// outageLength is how long a server stays away: 10 s, or as E2E_OUTAGE says.
var outageLength = func() time.Duration {
	d, err := time.ParseDuration(os.Getenv("E2E_OUTAGE"))
	if err != nil {
		return 10 * time.Second
	}
	return d
}()

// server is something that nodes need and that can go away for a while.
type server struct {
	*process
	args []string
	// again starts it as it was before, on the same data and the same port.
	again func(t *testing.T) *process
}

// start starts a server, or brings it back.
func (s *server) start(t *testing.T) {
	t.Helper()
	s.process = s.again(t)
}

// freeze stops a server where it is: its connections stay, and nothing is answered.
func (s *server) freeze(t *testing.T) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
}

// thaw lets it go on.
func (s *server) thaw(t *testing.T) {
	t.Helper()
	s.signal(t, syscall.SIGCONT)
}

func (s *server) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// account is the user that the deployed configuration of NATS lets in.
var account = []string{"NATS_USER=perdure", "NATS_PASSWORD=perdure"}

// listens reports whether a port can be listened on.
func listens(t *testing.T, port int) bool {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
