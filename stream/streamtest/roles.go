package streamtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/stream"
)

// Roles is a server with the users and permissions of deploy/nats/roles.conf.
type Roles struct{ server *server.Server }

// secretName matches the variables in the file that have the passwords.
var secretName = regexp.MustCompile(`\$NATS_\w+`)

// WithRoles starts such a server, which ends with the test. The test runs in a directory of this module.
func WithRoles(t testing.TB) Roles {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	const name = "deploy/nats/roles.conf"
	roles, err := os.ReadFile(filepath.Join(dir, name))
	for err != nil && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
		roles, err = os.ReadFile(filepath.Join(dir, name))
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "roles.conf")
	if err := os.WriteFile(file, secretName.ReplaceAll(roles, []byte(`"password"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	deployed, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return Roles{ServerWith(t, func(o *server.Options) { o.Users = deployed.Users })}
}

// OpenAs opens the log as a user of the file, such as perdure-api. The connection is closed at the end of
// the test.
func (r Roles) OpenAs(t testing.TB, user string) *stream.Log {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(r.server), nats.UserInfo(user, "password"), nats.CustomInboxPrefix("_INBOX."+user))
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
