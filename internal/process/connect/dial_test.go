package connect_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/connect"
	"github.com/perdure/perdure/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// natsServer starts a server that stops with the test.
func natsServer(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	o.Host, o.NoSigs, o.NoLog = "127.0.0.1", true, true
	o.JetStream, o.StoreDir = true, t.TempDir()
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("nats-server is not ready, want it within 10s")
	}
	return s
}

// logbook collects log lines and sends on a channel for each line.
type logbook struct {
	mu    sync.Mutex
	text  bytes.Buffer
	lines chan struct{}
}

// newLogbook returns an empty log.
func newLogbook() *logbook { return &logbook{lines: make(chan struct{}, 100)} }

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.lines <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// logger returns a logger that writes to the log.
func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// settings returns the configuration of both servers.
func settings(natsURL, temporal string) *config.Config {
	return &config.Config{Connections: config.Connections{
		NATS:           config.NATS{URL: natsURL},
		Temporal:       client.Options{HostPort: temporal, Namespace: "prod"},
		Stream:         stream.Options{Stream: "PERDURE"},
		ConnectTimeout: 20 * time.Second,
	}}
}

func TestDialWaitsForServersToStart(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	absent := serviceerror.NewNamespaceNotFound("prod")
	temporal := &frontend{describe: func(calls int) error {
		if calls < 3 {
			return absent
		}
		return nil
	}}
	cfg := settings("nats://127.0.0.1:"+port, temporal.serve(t))
	log := newLogbook()
	var connections *connect.Connections
	var err error
	dialed := make(chan struct{})
	go func() {
		defer close(dialed)
		connections, err = connect.Dial(t.Context(), cfg, "test", log.logger())
	}()
	<-log.lines // after the first attempt has failed
	number, _ := net.LookupPort("tcp", port)
	natsServer(t, &server.Options{Port: number})
	<-dialed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connections.Close)
	if !connections.NATS.IsConnected() {
		t.Error("NATS is not connected, want a connection")
	}
	for _, words := range []string{"server=NATS", "server=Temporal", "namespace prod"} {
		if !strings.Contains(log.String(), words) {
			t.Errorf("log: want text with %q, got\n%s", words, log)
		}
	}
}

// freePort returns an address that is not in use.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestDialIsBounded(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	cfg := settings("nats://user:sesame@127.0.0.1:"+port+", token-sesame@127.0.0.1:"+port, "")
	cfg.ConnectTimeout = 300 * time.Millisecond
	log := newLogbook()
	_, err := connect.Dial(t.Context(), cfg, "test", log.logger())
	if want := "nats://127.0.0.1:" + port + ",nats://127.0.0.1:" + port + ": nats: no servers"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want the servers", err)
	}
	if err != nil && strings.Contains(err.Error()+log.String(), "sesame") {
		t.Errorf("error and log = %v\n%s\nwant no credentials", err, log)
	}
	if !errors.Is(err, nats.ErrNoServers) || !strings.Contains(err.Error(), "connect to NATS: no connection after 300ms") {
		t.Errorf("error = %v, want no connection after 300ms", err)
	}
}

func TestDialEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	log := newLogbook()
	go func() { <-log.lines; cancel() }()
	_, err := connect.Dial(ctx, settings("nats://127.0.0.1:"+freePort(t), ""), "test", log.logger())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
}

func TestPermanentErrorsFailAtOnce(t *testing.T) {
	t.Parallel()
	guarded := natsServer(t, &server.Options{Port: server.RANDOM_PORT, Username: "u", Password: "p"})
	tests := []struct {
		name string
		set  func(*config.NATS)
		want error
	}{
		{"wrong password", func(n *config.NATS) { n.User, n.Password = "u", "x" }, nats.ErrAuthorization},
		{"no such CA file", func(n *config.NATS) { n.CA = filepath.Join(t.TempDir(), "ca.pem") }, fs.ErrNotExist},
		{"no such key file", func(n *config.NATS) { n.NKey = filepath.Join(t.TempDir(), "seed") }, fs.ErrNotExist},
		{"no such credentials file", func(n *config.NATS) { n.Credentials = filepath.Join(t.TempDir(), "creds") }, fs.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log := newLogbook()
			cfg := settings(guarded.ClientURL(), "")
			tt.set(&cfg.NATS)
			_, err := connect.Dial(t.Context(), cfg, "test", log.logger())
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if log.String() != "" {
				t.Errorf("log after a permanent error = %s, want no retry", log)
			}
		})
	}
}

func TestCertificateNeedsItsKey(t *testing.T) {
	t.Parallel()
	cfg := settings("nats://127.0.0.1:1", "")
	cfg.NATS.Cert = "cert.pem"
	cfg.ConnectTimeout = 300 * time.Millisecond
	_, err := connect.Dial(t.Context(), cfg, "test", newLogbook().logger())
	var bad *config.VariableError
	if !errors.As(err, &bad) || bad.Name != "NATS_CERT" {
		t.Errorf("error = %v, want one about NATS_CERT", err)
	}
}

func TestPasswordIsUsed(t *testing.T) {
	t.Parallel()
	guarded := natsServer(t, &server.Options{Port: server.RANDOM_PORT, Username: "u", Password: "p"})
	temporal := &frontend{describe: func(int) error { return serviceerror.NewPermissionDenied("no", "") }}
	cfg := settings(guarded.ClientURL(), temporal.serve(t))
	cfg.NATS.User, cfg.NATS.Password = "u", "p"
	connections, err := connect.Dial(t.Context(), cfg, "test", newLogbook().logger())
	if err != nil {
		t.Fatal(err) // without permission to describe the namespace, the namespace may still be usable
	}
	connections.Close()
}
