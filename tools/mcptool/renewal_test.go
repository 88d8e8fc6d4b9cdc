package mcptool_test

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/mcptool"
)

const renewing = "because its secrets have changed"

// rotated connects to a program whose secret changes with set. gate is the address for its tool
// gated.
func rotated(t *testing.T, secret, gate string) (c *connection, set func(string)) {
	t.Helper()
	var current atomic.Pointer[string]
	current.Store(&secret)
	c = &connection{log: newWitness()}
	cfg := stdio("rotated")
	cfg.Name, cfg.Env[gateVariable] = "play", gate
	var err error
	c.Server, err = mcptool.Start(cfg, mcptool.Environment{Logger: slog.New(c.log), Secret: func(string) string { return *current.Load() }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	empty, err := tools.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	if c.registry, err = empty.With(c.Server); err != nil {
		t.Fatal(err)
	}
	c.log.await(t, connected, 1)
	return c, func(secret string) { current.Store(&secret) }
}

// wantToken fails unless the program has the token. Tokens of 3 bytes are not redacted.
func wantToken(t *testing.T, c *connection, token string) {
	t.Helper()
	if got := c.call(t, "environment", `{}`).Content; !strings.Contains(got, "TOKEN="+token) {
		t.Errorf("environment of the program:\n%s\nwant the token %s", got, token)
	}
}

// TestProgramsGetRotatedSecrets: the call after a rotation finds a program with the new secret. A
// secret that is missing meanwhile changes nothing.
func TestProgramsGetRotatedSecrets(t *testing.T) {
	t.Parallel()
	c, set := rotated(t, "one", "")
	wantToken(t, c, "one")
	set("")
	wantToken(t, c, "one")
	set("two")
	wantToken(t, c, "two")
	wantToken(t, c, "two")
	c.log.await(t, renewing, 1)
	if all, _ := c.log.text(); strings.Count(all, connected) != 2 {
		t.Errorf("log:\n%s\nwant two connections", all)
	}
}

// TestActiveCallsEndBeforeRenewal: a program with an outdated secret ends after its active calls,
// and later calls wait for the next program. The former secret stays hidden in their results.
func TestActiveCallsEndBeforeRenewal(t *testing.T) {
	t.Parallel()
	gates, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gates.Close() })
	c, set := rotated(t, "former-secret", gates.Addr().String())
	gated, environment := c.find(t, "gated"), c.find(t, "environment")
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() {
		result, err := gated.Call(t.Context(), tools.Call{})
		if want := "called with [secret]"; err != nil || result.Content != want {
			t.Errorf("active call = %q, %v, want %q", result.Content, err, want)
		}
	})
	gate, err := gates.Accept()
	if err != nil {
		t.Fatal(err)
	}
	set("two")
	wait.Go(func() {
		result, err := environment.Call(t.Context(), tools.Call{})
		if err != nil || !strings.Contains(result.Content, "TOKEN=two") {
			t.Errorf("later call: environment = %q, %v, want the token two", result.Content, err)
		}
	})
	c.log.await(t, renewing, 1)
	// A program that is stopped is killed within 3 seconds, which closes its end of the gate.
	if err := gate.SetReadDeadline(time.Now().Add(4 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := gate.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the program has closed the gate (%v), want it alive during its call", err)
	}
	if err := gate.Close(); err != nil {
		t.Error(err)
	}
}

// TestFailedRenewalIsReported: calls do not wait for a program that does not start again.
func TestFailedRenewalIsReported(t *testing.T) {
	t.Parallel()
	c, set := rotated(t, "one", "")
	set(refusedToken)
	if got, want := awayText(t, c.find(t, "environment")), "play_environment failed: the server is not connected, and nothing was done"; got != want {
		t.Errorf("result for the model = %q, want %q", got, want)
	}
	set("two")
	c.log.await(t, connected, 2)
	wantToken(t, c, "two")
}
