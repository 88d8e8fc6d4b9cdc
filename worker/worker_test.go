package worker

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"
)

// asProcess is the environment variable with which the test binary runs Main instead of the tests.
const asProcess = "WORKER_TEST_AS_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		os.Args = os.Args[:1]
		Main(Additions{})
		return
	}
	goleak.VerifyTestMain(m)
}

func TestHelpSucceeds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Run(t.Context(), Additions{}, []string{"--help"}, nil, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "PERDURE_WORKFLOW_CACHE") || strings.Contains(got, "PERDURE_ADDR") {
		t.Errorf("help = %s, want PERDURE_WORKFLOW_CACHE and no PERDURE_ADDR", got)
	}
}

func TestUnreachableServersEndProcess(t *testing.T) {
	t.Parallel()
	environ := []string{"NATS_URL=nats://127.0.0.1:1", "PERDURE_CONNECT_TIMEOUT=300ms", "TEMPORAL_CONFIG_FILE=none"}
	err := Run(t.Context(), Additions{}, nil, environ, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "connect to NATS") {
		t.Errorf("error = %v, want text with %q", err, "connect to NATS")
	}
}

// TestSIGTERMDuringStart: SIGTERM ends the process with status 0 while it waits for NATS or for
// Temporal, also if the server accepts the connection and sends nothing.
func TestSIGTERMDuringStart(t *testing.T) {
	t.Parallel()
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	nats.Start()
	defer func() { nats.Shutdown(); nats.WaitForShutdown() }()
	if !nats.ReadyForConnections(10 * time.Second) {
		t.Fatal("nats-server is not ready, want it within 10s")
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, environ := range map[string][]string{
		"NATS":     {"NATS_URL=nats://" + silent.Addr().String()},
		"Temporal": {"NATS_URL=" + nats.ClientURL(), "TEMPORAL_ADDRESS=" + silent.Addr().String()},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(environ, asProcess+"=1", "TEMPORAL_CONFIG_FILE=none")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			conn, err := silent.Accept() // the process waits for the server's answer
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			begun := time.Now()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			err = cmd.Wait()
			if took := time.Since(begun); err != nil || took > 3*time.Second || !strings.Contains(out.String(), "stopped before the worker was ready") {
				t.Errorf("SIGTERM during the start: got %v after %s, want an orderly stop:\n%s", err, took, out.String())
			}
		})
	}
}

func TestInvalidToolsEndProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "kind: tool\nname: a\nhttp:\n  method: GET\n  url: https://shop.example\n  headers: {Authorization: \"${secret:SHOP}\"}\n"
	if err := os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"NATS_URL=nats://127.0.0.1:1", "PERDURE_CONNECT_TIMEOUT=300ms", "TEMPORAL_CONFIG_FILE=none", "PERDURE_AGENTS=" + dir}
	err := Run(t.Context(), Additions{}, nil, environ, io.Discard)
	if err == nil || !strings.HasSuffix(err.Error(), "shop.yaml:6: http.headers cannot be sent: secret SHOP is missing: the worker has no PERDURE_SECRET_SHOP") {
		t.Errorf("missing secret: got %v, want an error with its place", err)
	}
	err = Run(t.Context(), Additions{}, nil, append(environ, "PERDURE_SECRET_SHOP=token"), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "connect to NATS") {
		t.Errorf("with the secret: error = %v, want text with %q", err, "connect to NATS")
	}
}

func TestIdentityIsUnique(t *testing.T) {
	t.Parallel()
	if a, b := identity(), identity(); a == b {
		t.Errorf("identity of two processes = %s, want different ones", a)
	}
	if id := identity(); !regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`).MatchString(id) {
		t.Errorf("identity = %s, want letters, digits and hyphens", id)
	}
}
