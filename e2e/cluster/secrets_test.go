package cluster

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/e2e/kit"
)

// TestSecretsOfCompose: three nodes of NATS, an API and a worker run with the configuration of
// docker-compose.yml and the secrets that deploy/setup.sh makes: mutual TLS, a role for each
// process, and an API key.
func TestSecretsOfCompose(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("SKIP: openssl is not installed")
	}
	secrets, config := filepath.Join(t.TempDir(), "secrets"), t.TempDir()
	if err := kit.Execute(".", "sh", filepath.Join("..", "deploy", "setup.sh"), secrets); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"perdure.conf", "node.conf", "roles.conf"} {
		text, err := os.ReadFile(filepath.Join("..", "deploy", "nats", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(config, name), []byte(strings.ReplaceAll(string(text), "/secrets/", secrets+"/nats/")), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(secrets, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	c := kit.NewCluster(t)
	c.NATSPasswords = strings.Fields(read("nats.env"))
	c.StartNATSWith(t, filepath.Join(config, "perdure.conf"), 3)
	c.StartTemporal(t)
	c.Addrs.NATS = strings.ReplaceAll(c.Addrs.NATS, "nats://", "tls://")
	common := c.Env
	envOf := func(role string, further ...string) []string {
		dir := filepath.Join(secrets, role)
		return append(append(append([]string{}, common...), "NATS_PASSWORD=", "NATS_PASSWORD_FILE="+filepath.Join(dir, "nats-password"),
			"NATS_CA="+filepath.Join(dir, "ca.pem"), "NATS_CERT="+filepath.Join(dir, "cert.pem"), "NATS_KEY="+filepath.Join(dir, "key.pem")), further...)
	}
	c.Env = envOf("api", "PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS="+filepath.Join(secrets, "api", "keys.yaml"))
	g := c.StartAPI(t)
	c.Env = envOf("worker")
	c.StartWorker(t)

	in := kit.NewInput(kit.Marked("What is 12*7?"))
	c.Threads.Add(in.ThreadID)
	kit.WantProblem(t, g.RequestAs(t, "", http.MethodPost, "/v1/agents/demo/runs", in), http.StatusUnauthorized, "unauthenticated")
	events := kit.WantEvents(t, g.RequestAs(t, read("api-key"), http.MethodPost, "/v1/agents/demo/runs", in))
	if last := events[len(events)-1]; last.Type != "RUN_FINISHED" {
		t.Errorf("the run ended with %s, want RUN_FINISHED", last.Data)
	}

	authority := nats.RootCAs(filepath.Join(secrets, "nats", "ca.pem"))
	password := nats.UserInfo("perdure-admin", read("nats-admin"))
	if nc, err := nats.Connect(c.Addrs.NATS, authority, password); err == nil {
		nc.Close()
		t.Error("a client without a certificate: connected, want a refusal")
	}
	certificate := nats.ClientCert(filepath.Join(secrets, "worker", "cert.pem"), filepath.Join(secrets, "worker", "key.pem"))
	if nc, err := nats.Connect(c.Addrs.NATS, authority, certificate, nats.UserInfo("perdure-api", read("nats-worker"))); err == nil {
		nc.Close()
		t.Error("the worker as the user of the API: connected, want a refusal")
	}
}
