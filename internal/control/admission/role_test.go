package admission

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestRolesSuffice: with the deployed configuration of NATS, workers write the state of models, and the
// API reads it.
func TestRolesSuffice(t *testing.T) {
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
	open := func(user string) *stream.Log {
		nc, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo(user, "password"), nats.CustomInboxPrefix("_INBOX."+user))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		l, err := stream.Open(t.Context(), nc, stream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	api := open("perdure-api")
	g, err := Open(t.Context(), open("perdure-worker"), "a", Limits{"p": {Calls: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Stop)
	admit(t, g).End(&llm.Error{Code: llm.CodeRateLimited, RetryAfter: time.Minute})
	await(t, api, func(s State) bool { return len(s.Pauses) == 1 })
}
