// Package streamtest runs a real nats-server in the test's process, with JetStream on the test's
// own directory, and opens a log on it. Everything that it starts ends with the test. It is for
// tests of all packages that need a log.
package streamtest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/stream"
)

// Server starts a server that ends with the test.
func Server(t testing.TB) *server.Server {
	t.Helper()
	return ServerAt(t, t.TempDir())
}

// ServerAt starts a server on a directory, so that a test can stop it and start another one on the
// same data. The server ends with the test at the latest.
func ServerAt(t testing.TB, dir string) *server.Server {
	t.Helper()
	return ServerWith(t, func(o *server.Options) { o.StoreDir = dir })
}

// ServerWith starts a server with options that change has set; without a StoreDir it gets a
// directory of its own. The server ends with the test at the latest.
func ServerWith(t testing.TB, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, NoSigs: true, NoLog: true}
	if change(o); o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatalf("nats-server: %v", err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("nats-server is not ready after a minute")
	}
	return s
}

// Connect connects to a server within the process, without a TCP connection. The connection is
// closed at the end of the test.
func Connect(t testing.TB, s *server.Server) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// Open opens a log on a server of its own, with default options.
func Open(t testing.TB) *stream.Log {
	t.Helper()
	return OpenOn(t, Server(t))
}

// OpenOn opens a log on a server with a new connection, as another process would.
func OpenOn(t testing.TB, s *server.Server) *stream.Log {
	t.Helper()
	l, err := stream.Open(t.Context(), Connect(t, s), stream.Options{})
	if err != nil {
		t.Fatalf("open log: %v", err)
	}
	return l
}

// Follow starts a follower that ends with the test.
func Follow(t testing.TB, l *stream.Log) *stream.Follower {
	t.Helper()
	f, err := l.Follow(t.Context())
	if err != nil {
		t.Fatalf("follow: %v", err)
	}
	t.Cleanup(f.Stop)
	return f
}
