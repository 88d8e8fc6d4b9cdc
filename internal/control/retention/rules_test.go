package retention

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/process/filewatch"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamtest.Leaks()) }

// mustParse returns the rules of a file.
func mustParse(t *testing.T, text string) *Rules {
	t.Helper()
	r, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMostSpecificRuleWins: the agent of a tenant precedes the tenant, which precedes the agent of
// all tenants, which precedes the default. 0 is a rule: for ever.
func TestMostSpecificRuleWins(t *testing.T) {
	t.Parallel()
	r := mustParse(t, `
default: {threads: 2160h, audit: 100h}
agents: {support: {threads: 720h}, archive: {threads: 0}}
tenants:
  acme: {threads: 8760h, agents: {support: {threads: 24h}}}
  globex: {audit: 0, agents: {support: {}}}
  initech: {threads: 0}
  empty:
`)
	for _, tt := range []struct {
		tenant, agent, want string
	}{
		{"acme", "support", "tenants.acme.agents.support.threads=24h0m0s"},
		{"acme", "archive", "tenants.acme.threads=8760h0m0s"},
		{"globex", "support", "agents.support.threads=720h0m0s"},
		{"globex", "archive", "agents.archive.threads=0s"},
		{"initech", "support", "tenants.initech.threads=0s"},
		{"empty", "other", "default.threads=2160h0m0s"},
		{"unlisted", "other", "default.threads=2160h0m0s"},
	} {
		if got := r.Threads(tt.tenant, tt.agent).String(); got != tt.want {
			t.Errorf("threads of %s in %s: got %s, want %s", tt.agent, tt.tenant, got, tt.want)
		}
	}
	keep := r.Audit()
	for chain, want := range map[store.Chain]string{
		store.OfTenant("acme"): "default.audit=100h0m0s", store.OfTenant("globex"): "tenants.globex.audit=0s", store.Platform: "default.audit=100h0m0s",
	} {
		if got := keep(chain).String(); got != want {
			t.Errorf("audit: got %s, want %s", got, want)
		}
	}
	for tenant, want := range map[string]time.Duration{"acme": 24 * time.Hour, "globex": 720 * time.Hour} {
		if got := r.shortest(tenant); got != want {
			t.Errorf("shortest time of %s: got %s, want %s", tenant, got, want)
		}
	}
	if got := r.shortestOfAll(); got != 24*time.Hour {
		t.Errorf("shortest time: got %s, want 24h", got)
	}
}

func TestDefaultsWithoutFile(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Rules{"nil": nil, "an empty file": mustParse(t, "")} {
		if got := r.Threads("acme", "a").TTL; got != 0 {
			t.Errorf("%s: threads are kept for %s, want for ever", name, got)
		}
		if got := r.Audit()(store.Platform).TTL; got != defaultAudit {
			t.Errorf("%s: audit entries are kept for %s, want a year", name, got)
		}
	}
}

// TestMistakesNameTheirLine: every mistake in a file is reported with its line.
func TestMistakesNameTheirLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"default: {threads: 30d}":                                    `line 1: threads: "30d" must be a time such as 720h`,
		"default: {threads: -1h}":                                    "line 1: threads:",
		"default: {threads: 10ms}":                                   "at least 1s",
		"default: {threads: [1h]}":                                   "line 1: threads:",
		"default:\n  thread: 1h":                                     `line 2: unknown key "thread"`,
		"default: {files: 1h}":                                       `line 1: unknown key "files": the keys are [threads audit]`,
		"agents:\n  support: {audit: 1h}":                            "line 2: the audit log belongs to no agent",
		"tenants:\n  acme:\n    agents:\n      support: {audit: 1h}": "line 4: the audit log belongs to no agent",
		"tenant: {}":                                                 `line 1: unknown key "tenant"`,
		"tenants: {\"\": {threads: 1h}}":                             "the name of a tenant must not be empty",
		"tenants: [acme]":                                            "must be a mapping",
		"agents: 1h":                                                 "must be a mapping",
		"default: {threads: 1h, threads: 2h}":                        `"threads" is repeated`,
		"default: {":                                                 "yaml:",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %s", text, err, want)
		}
	}
}

// TestChangedFileIsRead: the rules follow the file, and keep what they have while it is invalid.
func TestChangedFileIsRead(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "retention.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(name, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a missing file was accepted")
	}
	write("default: {threads: 1h}")
	invalid := make(chan struct{}, 1)
	r, err := Open(name, slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "invalid") {
			invalid <- struct{}{}
		}
		return len(p), nil
	}), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	changes := make(chan filewatch.Change, 2)
	r.Observe(func(c filewatch.Change) { changes <- c })
	if c := <-changes; c.Digest != filewatch.DigestOf([]byte("default: {threads: 1h}")) || len(c.Added) > 0 {
		t.Errorf("the first content: got %+v, want its digest without names", c)
	}
	write("default: {threads: x}")
	<-invalid
	if got := r.Threads("acme", "a").TTL; got != time.Hour {
		t.Errorf("with an invalid file: got %s, want 1h", got)
	}
	write("default: {threads: 2h}\nagents: {a: {threads: 2h}}\ntenants: {acme: {audit: 1h}}")
	ticker := time.NewTicker(filewatch.Interval / 10)
	defer ticker.Stop()
	for r.Threads("acme", "a").TTL != 2*time.Hour {
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatal("the changed file was not read")
		}
	}
	if c := <-changes; fmt.Sprint(c.Added, c.Changed, c.Removed) != "[agent a tenant acme] [default] []" {
		t.Errorf("the changed file: got %+v, want its names", c)
	}
}

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// FuzzParse: every file is accepted or refused, and what is accepted has valid times.
func FuzzParse(f *testing.F) {
	f.Add([]byte("default: {threads: 2160h, audit: 0}\nagents: {a: {threads: 1s}}\ntenants: {t: {agents: {a: {threads: 24h}}}}"), "t", "a")
	f.Add([]byte("tenants:\n  t: &x {threads: 1h}\n  u: *x"), "u", "")
	f.Fuzz(func(t *testing.T, data []byte, tenant, agent string) {
		r, err := Parse(data)
		if err != nil {
			return
		}
		rule := r.Threads(tenant, agent)
		if rule.TTL != 0 && (rule.TTL < minTTL || r.shortest(tenant) == 0 || r.shortest(tenant) > rule.TTL) {
			t.Errorf("%s is below the shortest time %s, or too short", rule, r.shortest(tenant))
		}
	})
}
