package stream_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/perdure/perdure/stream"
)

// FuzzToken holds any two ids apart: neither is the other's token, nor does one match the other
// where NATS takes tokens for patterns.
func FuzzToken(f *testing.F) {
	ids := []string{"a", "A", "é", "e\u0301", "a.b", "a*", "*", ">", "", ".", "~a", "a b", "a/b", "\x00", "\xff", strings.Repeat("x", 64), strings.Repeat("x", 65), "$JS", "default"}
	for i, id := range ids {
		f.Add(id, ids[(i+1)%len(ids)])
		f.Add(id, stream.Token(id))
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := stream.Token(a), stream.Token(b)
		if (x == y) != (a == b) {
			t.Errorf("%q and %q have the tokens %q and %q", a, b, x, y)
		}
		for _, token := range []string{x, y} {
			if !server.IsValidLiteralSubject(token) || strings.ContainsAny(token, "./$ \t\r\n") || len(token) > 64 || !utf8.ValidString(token) {
				t.Errorf("%q is no token", token)
			}
		}
		subject := func(thread, run string) string { return "perdure.default." + thread + "." + run + ".main" }
		if a == b {
			return
		}
		for _, other := range []string{subject(y, x), subject(x, y), subject(y, y)} {
			if server.SubjectsCollide(subject(x, x), other) {
				t.Errorf("%s and %s are one", subject(x, x), other)
			}
		}
	})
}

// FuzzIdentify: no two places of no two runs have one id, whatever the names are. Control
// characters aside, of which the api takes none: NUL separates what is hashed.
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
		if same := a == b && placeA == placeB; (a.Identify("msg", placeA) == b.Identify("msg", placeB)) != same {
			t.Errorf("%q of %+v and %q of %+v", placeA, a, placeB, b)
		}
	})
}
