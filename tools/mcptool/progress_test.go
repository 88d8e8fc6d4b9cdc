package mcptool

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestProgressMessageIsCutBetweenCharacters: a progress message that is too long is cut between two
// characters.
func TestProgressMessageIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	p := &progress{latest: make(chan shown, 1)}
	s := &Server{dialer: &remote{transport: &http.Transport{}}, watched: map[string]*progress{"token": p}}
	s.noteProgress(&mcp.ProgressNotificationParams{ProgressToken: "token", Message: strings.Repeat("€", maxMessageLen)})
	got := (<-p.latest).Message
	if !utf8.ValidString(got) || len(got) > maxMessageLen || len(got) < maxMessageLen-utf8.UTFMax {
		t.Errorf("message of %d bytes, valid UTF-8: %t, want at most %d bytes", len(got), utf8.ValidString(got), maxMessageLen)
	}
}
