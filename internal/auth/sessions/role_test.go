package sessions_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestRoleOfTheAPISuffices: the API has the permissions for sessions in the deployed configuration
// of NATS.
func TestRoleOfTheAPISuffices(t *testing.T) {
	t.Parallel()
	roles, err := os.ReadFile("../../../deploy/nats/roles.conf")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "roles.conf")
	if err := os.WriteFile(file, regexp.MustCompile(`\$NATS_\w+`).ReplaceAll(roles, []byte(`"password"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	deployed, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := streamtest.ServerWith(t, func(o *server.Options) { o.Users = deployed.Users })
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo("perdure-api", "password"), nats.CustomInboxPrefix("_INBOX.perdure-api"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	log, err := stream.Open(t.Context(), nc, stream.Options{})
	if err != nil {
		t.Fatal(err)
	}
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
