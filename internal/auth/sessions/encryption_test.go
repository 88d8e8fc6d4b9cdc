package sessions_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"gocloud.dev/secrets/localsecrets"

	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/internal/encryption"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// operatorKeys returns keys of the operator; equal IDs name equal keys.
func operatorKeys(ids ...string) (operators []encryption.OperatorKey) {
	for _, id := range ids {
		var key [32]byte
		copy(key[:], id)
		operators = append(operators, encryption.OperatorKey{ID: id, Keeper: localsecrets.NewKeeper(key)})
	}
	return operators
}

// openLog opens a log on a server, with keys of the operator if there are IDs.
func openLog(t *testing.T, s *server.Server, ids ...string) *stream.Log {
	t.Helper()
	var o stream.Options
	if len(ids) > 0 {
		o.Cipher = encryption.Cipher(operatorKeys(ids...))
	}
	l, err := stream.Open(t.Context(), streamtest.Connect(t, s), o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// findInFiles reports which of the texts are in a file under a directory.
func findInFiles(t *testing.T, dir string, texts ...string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) && !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestStoredSessionsAreEncrypted: the files of the server have neither the user, nor the refresh
// token. Without keys they have both, which shows that the search finds them.
func TestStoredSessionsAreEncrypted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		operators []string
		finds     bool
	}{"with keys": {[]string{"a"}, false}, "without keys": {nil, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := streamtest.ServerAt(t, dir)
			p, b := newProvider(t), newBrowser(t)
			p.claims = claims{"sub": "the-user-of-the-session"}
			s, other := p.open(openLog(t, server, tt.operators...)), p.open(openLog(t, server, tt.operators...))
			b.signIn(s, p)
			if _, err := b.identify(other); err != nil {
				t.Errorf("another process: %v", err)
			}
			server.Shutdown()
			server.WaitForShutdown()
			found := findInFiles(t, dir, "the-user-of-the-session", p.refresh)
			if tt.finds && len(found) != 2 || !tt.finds && len(found) != 0 {
				t.Errorf("the files have %q, want both texts: %t", found, tt.finds)
			}
		})
	}
}

// TestSessionsSurviveRotations: sessions from before the encryption, and from before the rotation of
// each level of keys, stay valid: for processes that know them, and for those that start later, also
// without the operator's earlier key.
func TestSessionsSurviveRotations(t *testing.T) {
	t.Parallel()
	server := streamtest.ServerAt(t, t.TempDir())
	p := newProvider(t)
	before, plain := p.open(openLog(t, server)), newBrowser(t)
	plain.signIn(before, p)
	s, b := p.open(openLog(t, server, "a", "b")), newBrowser(t)
	b.signIn(s, p)
	keys, err := encryption.Open(t.Context(), openLog(t, server), operatorKeys("b", "a"))
	if err != nil {
		t.Fatal(err)
	}
	wantValid := func(when string, processes ...*sessions.Sessions) {
		t.Helper()
		for _, process := range processes {
			for _, browser := range []*browser{plain, b} {
				if _, err := browser.identify(process); err != nil {
					t.Errorf("%s: %v", when, err)
				}
			}
		}
	}
	wantValid("before", s)
	for range 2 { // the second rotation removes the first key of the tenant
		if _, err := keys.RotateThreads(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := keys.RotateTenants(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := keys.RotateOperator(t.Context()); err != nil || n == 0 {
		t.Fatalf("RotateOperator = %d, %v, want the key of the sessions", n, err)
	}
	wantValid("after the rotations", s, p.open(openLog(t, server, "b")))
	if err := s.Expire(b.request("GET", "/")); err != nil {
		t.Fatal(err)
	}
	wantValid("after the renewal", p.open(openLog(t, server, "b")), s)
}
