package sessions_test

import (
	"testing"

	"github.com/perdure/perdure/stream/streamtest"
)

// TestRoleOfTheAPISuffices: the API has the permissions for sessions in the deployed configuration
// of NATS.
func TestRoleOfTheAPISuffices(t *testing.T) {
	t.Parallel()
	log := streamtest.WithRoles(t).OpenAs(t, "perdure-api")
	p := newProvider(t)
	sessions, b := p.open(log), newBrowser(t)
	b.signIn(sessions, p)
	identity, err := b.identify(sessions)
	if err != nil {
		t.Fatal(err)
	}
	if err := sessions.EndByProvider(b.request("POST", "/auth/backchannel-logout"), p.logoutToken(nil)); err != nil {
		t.Fatal(err)
	}
	<-identity.Valid.Done()
	wantEnded(t, sessions, b, "after the logout")
}
