package kit

import (
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// OutageLength is how long a server stays away: 10 s, or as E2E_OUTAGE says.
var OutageLength = func() time.Duration {
	d, err := time.ParseDuration(os.Getenv("E2E_OUTAGE"))
	if err != nil {
		return 10 * time.Second
	}
	return d
}()

// Server is something that nodes need and that can go away for a while.
type Server struct {
	*Process
	Args []string
	// again starts it as it was before, on the same data and the same port.
	again func(t *testing.T) *Process
}

// Start starts a server, or brings it back.
func (s *Server) Start(t *testing.T) {
	t.Helper()
	s.Process = s.again(t)
}

// Freeze stops a server where it is: its connections stay, and nothing is answered.
func (s *Server) Freeze(t *testing.T) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
}

// Thaw lets it go on.
func (s *Server) Thaw(t *testing.T) {
	t.Helper()
	s.signal(t, syscall.SIGCONT)
}

func (s *Server) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := s.Cmd.Process.Signal(sig); err != nil {
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
