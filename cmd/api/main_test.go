package main

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/process/certificates/certtest"
	"github.com/perdure/perdure/internal/process/config"
)

// asProcess is the environment variable with which the test binary runs main instead of the tests.
const asProcess = "API_TEST_AS_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		os.Args = os.Args[:1]
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestHelpSucceeds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, nil, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "PERDURE_ADDR") {
		t.Errorf("help = %s, want text with %s", out.String(), "PERDURE_ADDR")
	}
}

func TestInvalidSettingsEndProcess(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, variable, want string
	}{
		{"a bad value", "PERDURE_REPLICAS=7", "PERDURE_REPLICAS"},
		{"no such folder", "PERDURE_AGENTS=/no/such/folder", "agents folder"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), nil, []string{tt.variable, "TEMPORAL_CONFIG_FILE=none"}, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want text with %q", err, tt.want)
			}
		})
	}
}

func TestUnreachableServersEndProcess(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	environ := []string{"NATS_URL=nats://127.0.0.1:1", "PERDURE_CONNECT_TIMEOUT=300ms", "PERDURE_REPLICA=3", "TEMPORAL_CONFIG_FILE=none"}
	err := run(t.Context(), nil, environ, &out)
	if err == nil || !strings.Contains(err.Error(), "connect to NATS") {
		t.Errorf("error = %v, want text with %q", err, "connect to NATS")
	}
	for _, words := range []string{"PERDURE_REPLICA", `"process":"api"`, `"level":"WARN"`} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("log: want text with %s, got\n%s", words, out.String())
		}
	}
}

// TestSIGTERMDuringStart: SIGTERM ends the process with status 0 while it waits for NATS. One
// attempt to connect takes up to 5 s if the server accepts the connection and sends nothing; the
// process does not wait for its end.
func TestSIGTERMDuringStart(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = []string{asProcess + "=1", "NATS_URL=nats://" + silent.Addr().String(), "PERDURE_ADDR=127.0.0.1:0", "TEMPORAL_CONFIG_FILE=none"}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := silent.Accept() // the process waits for the server's first line
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begun := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if took := time.Since(begun); err != nil || took > 3*time.Second || !strings.Contains(out.String(), "stopped before the API was ready") {
		t.Errorf("SIGTERM during the start: got %v after %s, want an orderly stop:\n%s", err, took, out.String())
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	ask := func() error {
		address := server.Listener.Addr().String()
		return run(t.Context(), []string{"probe"}, []string{"PERDURE_ADDR=" + address, "TEMPORAL_CONFIG_FILE=none"}, &bytes.Buffer{})
	}
	if err := ask(); err != nil {
		t.Errorf("ready: %v", err)
	}
	status = http.StatusServiceUnavailable
	if err := ask(); err == nil {
		t.Error("probe before the API is ready: got success, want an error")
	}
	server.Close()
	if err := ask(); err == nil {
		t.Error("probe without a server: got success, want an error")
	}
}

func TestProbeOverTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	cert, key := certtest.NewAuthority(t).Issue(t, t.TempDir(), "api")
	environ := []string{"PERDURE_ADDR=" + server.Listener.Addr().String(), "PERDURE_TLS_CERT_FILE=" + cert, "PERDURE_TLS_KEY_FILE=" + key, "TEMPORAL_CONFIG_FILE=none"}
	if err := run(t.Context(), []string{"probe"}, environ, &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}

func TestAddressInUseIsNamed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := listen(t.Context(), server.Listener.Addr().String())
	var bad *config.VariableError
	if !errors.As(err, &bad) || bad.Name != "PERDURE_ADDR" {
		t.Errorf("error = %v, want one about PERDURE_ADDR", err)
	}
}

// TestAuthSettingsAreCheckedFirst: a process checks its authentication settings before it waits for
// servers.
func TestAuthSettingsAreCheckedFirst(t *testing.T) {
	t.Parallel()
	for variable, environ := range map[string][]string{
		"PERDURE_AUTH":          {"PERDURE_ADDR=0.0.0.0:0"},
		"PERDURE_TLS_CERT_FILE": {"PERDURE_TLS_CERT_FILE=testdata/none", "PERDURE_TLS_KEY_FILE=testdata/none"},
		"PERDURE_AUTH_KEYS":     {"PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS=testdata/none"},
	} {
		err := run(t.Context(), nil, append(environ, "NATS_URL=nats://127.0.0.1:1", "TEMPORAL_CONFIG_FILE=none"), &bytes.Buffer{})
		var bad *config.VariableError
		if !errors.As(err, &bad) || bad.Name != variable {
			t.Errorf("error = %v, want one about %s", err, variable)
		}
	}
}
