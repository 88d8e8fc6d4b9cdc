package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/perdure/perdure/stream"
)

// FuzzToken checks that two IDs have different tokens, and that no token matches another as a NATS
// pattern.
func FuzzToken(f *testing.F) {
	ids := []string{"a", "A", "é", "e\u0301", "a.b", "a*", "*", ">", "", ".", "~a", "a b", "a/b", "\x00", "\xff", strings.Repeat("x", 64), strings.Repeat("x", 65), "$JS", "default"}
	for i, id := range ids {
		f.Add(id, ids[(i+1)%len(ids)])
		f.Add(id, stream.Token(id))
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := stream.Token(a), stream.Token(b)
		wantEqual(t, fmt.Sprintf("tokens of %q and %q are equal", a, b), x == y, a == b)
		for _, token := range []string{x, y} {
			wantEqual(t, "token is a valid literal subject", server.IsValidLiteralSubject(token), true)
			wantEqual(t, "token has a character of subjects or white space", strings.ContainsAny(token, "./$ \t\r\n"), false)
			if len(token) > 64 {
				t.Errorf("length of the token = %v, want at most %v", len(token), 64)
			}
			wantEqual(t, "token is valid UTF-8", utf8.ValidString(token), true)
		}
		subject := func(thread, run string) string { return "perdure.default." + thread + "." + run + ".main" }
		if a == b {
			return
		}
		for _, other := range []string{subject(y, x), subject(x, y), subject(y, y)} {
			wantEqual(t, "subjects of different runs collide", server.SubjectsCollide(subject(x, x), other), false)
		}
	})
}

// FuzzIdentify checks that two places of two runs have different IDs, whatever their names. It
// leaves out NUL, which separates the hashed parts and which the API refuses.
func FuzzIdentify(f *testing.F) {
	f.Add("t", "r", "t", "r2", "1/model", "1/model")
	f.Add("t", "r", "tr", "", "1/model", "1/model")
	f.Add("a", "b.c", "a.b", "c", "p", "p")
	f.Fuzz(func(t *testing.T, threadA, runA, threadB, runB, placeA, placeB string) {
		if strings.Contains(threadA+runA+threadB+runB+placeA+placeB, "\x00") {
			return
		}
		a := stream.Run{Thread: stream.Thread{Tenant: "x", ID: threadA}, ID: runA}
		b := stream.Run{Thread: stream.Thread{Tenant: "x", ID: threadB}, ID: runB}
		same := a == b && placeA == placeB
		wantEqual(t, "IDs of both places are equal", a.Identify("msg", placeA) == b.Identify("msg", placeB), same)
	})
}
