package sessions_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestSignInAndSignOutAreObserved: the audit log learns who has signed in, and why a session has
// ended.
func TestSignInAndSignOutAreObserved(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.open(streamtest.Open(t))
	var events []string
	s.Observe(func(_ context.Context, e sessions.Event) {
		events = append(events, e.Principal.Subject+": "+string(e.Ended))
	})
	b := newBrowser(t)
	b.signIn(s, p)
	b.signIn(s, p)
	if _, _, err := s.SignOut(b.request(http.MethodPost, "/auth/logout")); err != nil {
		t.Fatal(err)
	}
	want := []string{"ann: ", "ann: " + string(sessions.EndedBySignIn), "ann: ", "ann: " + string(sessions.EndedByUser)}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
