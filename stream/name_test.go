package stream_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/stream"
)

func TestTokenIsStable(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a", "A", "thread-1", "9_9", strings.Repeat("x", 64)} {
		if got := stream.Token(id); got != id {
			t.Errorf("Token(%q) = %q, want the id itself", id, got)
		}
	}
	seen := map[string]string{}
	odd := []string{
		"", ".", "a.b", "*", ">", "a b", "a/b", "~a", "ü", "\x00", "\xff", "a\n", "A/b", "a/B", strings.Repeat("x", 65), strings.Repeat("x", 66),
		strings.Repeat("long ", 200), "~" + strings.Repeat("a", 32),
	}
	for _, id := range odd {
		token := stream.Token(id)
		if len(token) != 33 || token[0] != '~' || strings.ContainsAny(token, ".*> \t\n/") {
			t.Errorf("Token(%.20q) = %q, want a token for a subject", id, token)
		}
		if other, ok := seen[token]; ok {
			t.Errorf("%.20q and %.20q have the same token", id, other)
		}
		seen[token] = id
		again := stream.Token(id)
		wantEqual(t, "repeated token", again, token)
	}
	// Tokens are part of stored subjects and of Temporal's IDs: they must not change.
	if got := stream.Token("a.b"); got != "~fzztnxeoxkd66rzn6vumgvecvpzfoxod" {
		t.Errorf("Token(%q) = %q, want %q as in earlier logs", "a.b", got, "~fzztnxeoxkd66rzn6vumgvecvpzfoxod")
	}
}

func TestIdentifyIsStable(t *testing.T) {
	t.Parallel()
	base := stream.Run{Thread: stream.Thread{Tenant: "x", ID: "t"}, ID: "r"}
	id := base.Identify("msg", "1/model")
	again := base.Identify("msg", "1/model")
	wantEqual(t, "repeated ID", again, id)
	if !strings.HasPrefix(id, "msg_") {
		t.Errorf("ID = %q, want prefix %q", id, "msg_")
	}
	for what, other := range map[string]string{
		"tenant": stream.Run{Thread: stream.Thread{Tenant: "y", ID: "t"}, ID: "r"}.Identify("msg", "1/model"),
		"thread": stream.Run{Thread: stream.Thread{Tenant: "x", ID: "u"}, ID: "r"}.Identify("msg", "1/model"),
		"run":    stream.Run{Thread: stream.Thread{Tenant: "x", ID: "t"}, ID: "s"}.Identify("msg", "1/model"),
		"place":  base.Identify("msg", "2/model"),
		"kind":   base.Identify("rsn", "1/model"),
	} {
		if other[4:] == id[4:] {
			t.Errorf("ID with another %s = %q, want another one than %q", what, other, id)
		}
	}
}
