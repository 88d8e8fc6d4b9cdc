package devserver

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/rpc/encryption"
	"go.yaml.in/yaml/v3"
)

// TestTemporalOfComposeUsesMutualTLS: Temporal's own template turns the environment of
// docker-compose.yml into mutual TLS, with the certificates of deploy/setup.sh: the worker's is
// accepted, and no certificate is not. Temporal reads the environment of the process, so this test
// is not parallel.
func TestTemporalOfComposeUsesMutualTLS(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("SKIP: openssl is not installed")
	}
	root, secrets := filepath.Join("..", "..", ".."), filepath.Join(t.TempDir(), "secrets")
	if out, err := exec.CommandContext(t.Context(), "sh", filepath.Join(root, "deploy", "setup.sh"), secrets).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var composition struct {
		Services map[string]struct {
			Environment map[string]string `yaml:"environment"`
		} `yaml:"services"`
	}
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err == nil {
		err = yaml.Unmarshal(text, &composition)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range composition.Services["temporal"].Environment {
		t.Setenv(name, strings.ReplaceAll(value, "/secrets", filepath.Join(secrets, "temporal")))
	}
	cfg, err := config.Load(config.WithEmbedded())
	if err != nil {
		t.Fatal(err)
	}
	provider, err := encryption.NewTLSConfigProviderFromConfig(cfg.Global.TLS, metrics.NoopMetricsHandler, log.NewNoopLogger(), nil)
	if err != nil {
		t.Fatal(err)
	}
	frontend, err := provider.GetFrontendServerConfig()
	if err != nil || frontend == nil {
		t.Fatalf("TLS of the frontend: %v, %v", frontend, err)
	}
	internode, err := provider.GetInternodeServerConfig()
	if err != nil || internode == nil {
		t.Fatalf("TLS between the services of Temporal: %v, %v", internode, err)
	}
	system, err := provider.GetFrontendClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	between, err := provider.GetInternodeClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	worker := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "temporal", MinVersion: tls.VersionTLS12}
	pair, err := tls.LoadX509KeyPair(filepath.Join(secrets, "worker", "cert.pem"), filepath.Join(secrets, "worker", "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(secrets, "worker", "ca.pem"))
	if err != nil || !worker.RootCAs.AppendCertsFromPEM(authority) {
		t.Fatal(err)
	}
	stranger := worker.Clone()
	worker.Certificates = []tls.Certificate{pair}
	for name, tt := range map[string]struct {
		server, client *tls.Config
		want           bool
	}{
		"a worker": {frontend, worker, true}, "no certificate": {frontend, stranger, false},
		"Temporal's own worker": {frontend, system, true}, "another service of Temporal": {internode, between, true}, "no certificate, between services": {internode, stranger, false},
	} {
		if err := shakeHands(t, tt.server, tt.client); (err == nil) != tt.want {
			t.Errorf("%s: %v, want accepted: %t", name, err, tt.want)
		}
	}
}

// shakeHands returns the error of a TLS handshake, as the server sees it.
func shakeHands(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	go func() {
		conn := tls.Client(far, client)
		_ = conn.HandshakeContext(t.Context()) // the server reports the error
		_, _ = conn.Read(make([]byte, 1))
	}()
	return tls.Server(near, server).HandshakeContext(t.Context())
}
