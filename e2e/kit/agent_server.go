package kit

import (
	"net"
	"path/filepath"
	"testing"
)

// AgentServer is a server of AG-UI agents that others have written, in a process of its own. Its
// address stays the same when it is started again.
type AgentServer struct {
	Address string // host:port
	folder  string
	script  string
	args    []string
	process *nodeServer
}

// StartAgentServer starts a script of node/ with the packages of a folder there: its arguments are
// host:port, the URL of SharedModel and args, and it prints {"url": …} when it listens. The server is
// killed when the test ends.
func StartAgentServer(t *testing.T, script, folder string, args ...string) *AgentServer {
	t.Helper()
	if err := Install(filepath.Join("node", folder)); err != nil {
		t.Fatal(err)
	}
	s := &AgentServer{Address: FreeAddress(t), folder: folder, script: script, args: args}
	s.Start(t)
	t.Cleanup(s.Kill)
	return s
}

// Start starts the server again after Kill.
func (s *AgentServer) Start(t *testing.T) {
	t.Helper()
	var err error
	args := append([]string{s.Address, SharedModel.URL}, s.args...)
	if s.process, err = launchNodeIn(filepath.Join("node", s.folder), filepath.Join("..", s.script), args...); err != nil {
		t.Fatal(err)
	}
}

// Kill kills the server with SIGKILL. It does nothing if the server does not run.
func (s *AgentServer) Kill() {
	if s.process != nil {
		s.process.Kill()
		s.process = nil
	}
}

// FreeAddress returns an address on loopback at which nothing listens.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
