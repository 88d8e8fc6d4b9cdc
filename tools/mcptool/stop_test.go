package mcptool

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestNoCallBeginsAfterStop: a call that begins between Stop and the end of the session is not
// made, so nothing was done.
func TestNoCallBeginsAfterStop(t *testing.T) {
	t.Parallel()
	life, end := context.WithCancel(t.Context())
	s := &Server{life: life, session: &mcp.ClientSession{}, watched: map[string]*progress{}}
	session, token, p := s.begin(nil, &tool{remoteName: "echo"})
	if session == nil {
		t.Fatal("session of a call before Stop = nil, want a value")
	}
	s.finish(token, p)
	end()
	if session, token, p := s.begin(nil, &tool{remoteName: "echo"}); session != nil {
		s.finish(token, p)
		t.Error("session of a call after Stop: got one, want nil")
	}
}
