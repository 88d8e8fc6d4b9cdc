package operations

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestAuditSurvives: the audit log tells who ran and deleted a thread, after the deletion and after a
// crash. Its chain verifies, contains the head that was noted before the crash, and its entries
// arrive at an OpenTelemetry collector.
func TestAuditSurvives(t *testing.T) {
	t.Parallel()
	c := &kit.Traces{Arrived: make(chan struct{})}
	endpoint := httptest.NewServer(c)
	t.Cleanup(endpoint.Close)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	quotas := filepath.Join(t.TempDir(), "quotas.yaml")
	writeQuotas := func(text string) {
		if err := os.WriteFile(quotas, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeQuotas("tenants: {acme: {runs: 5}, globex: {runs: 5}}")
	p.Env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint.URL, "OTEL_BLRP_SCHEDULE_DELAY=50", "PERDURE_QUOTAS_FILE=" + quotas}
	p.Flags = []string{"--log-level", "info"}
	p.Start(t)
	perdure := func(code int, args ...string) string { return p.StartCommand(t, args...).Finish(t, code) }

	thread := kit.NewThread()
	perdure(0, "run", "demo", "What is 12*7, and what time is it?", "--thread", thread)
	perdure(0, "hold", "set", thread, "--reason", "case 7")
	if code := p.StartCommand(t, "threads", "delete", thread); !strings.Contains(code.Finish(t, 7)+code.ErrOut.String(), "legal_hold") {
		t.Errorf("deletion of a thread with a hold: %s, want legal_hold", code.ErrOut.String())
	}
	perdure(0, "hold", "release", thread)
	perdure(0, "threads", "delete", thread)
	head := lastLine(perdure(0, "audit", "verify"))
	actions := []string{"run.start", "hold.set", "hold.release", "thread.delete"}
	for _, action := range actions { // a kill loses what the process has not sent to the collector yet
		c.AwaitRecord(t, action+" accepted")
	}
	p.Kill()
	p.Start(t)
	list := perdure(0, "audit", "--thread", thread)
	for _, action := range actions {
		if !strings.Contains(list, action+" ") {
			t.Errorf("entries of the deleted thread:\n%s\nwant one with %s", list, action)
		}
	}
	c.AwaitRecord(t, "thread.delete denied") // while the hold was set
	if after := lastLine(perdure(0, "audit", "verify", "--head", head)); after == head {
		t.Errorf("head = %s, want a later one", after)
	}
	writeQuotas("tenants: {acme: {runs: 6}, initech: {runs: 5}}")
	p.Output.Await(t, "the file of quotas has changed")
	loaded := perdure(0, "audit", "--platform", "--action", "quotas.load", "--json")
	for _, detail := range []string{`"added": "tenant initech"`, `"changed": "tenant acme"`, `"removed": "tenant globex"`} {
		if !strings.Contains(loaded, detail) {
			t.Errorf("entries of the file of quotas:\n%s\nwant one with %s", loaded, detail)
		}
	}
	if platform := perdure(0, "audit", "--platform"); strings.Count(platform, "policies.load ") != 2 {
		t.Errorf("entries of the platform:\n%s\nwant one for each start", platform)
	}

	file := filepath.Join(t.TempDir(), "audit.jsonl")
	export := perdure(0, "audit", "export")
	for name, text := range map[string]string{
		"unchanged":         export,
		"a changed subject": strings.Replace(export, "case 7", "case 8", 1),
		"a missing entry":   strings.Replace(export, strings.SplitAfter(export, "\n")[1], "", 1),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code := 0
		if name != "unchanged" {
			code = 1
		}
		verify := p.StartCommand(t, "audit", "verify", file, "--head", head)
		verify.Finish(t, code)
		if isBroken := strings.Contains(verify.ErrOut.String(), "broken"); isBroken != (code == 1) {
			t.Errorf("%s: verify reports %q", name, verify.ErrOut.String())
		}
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
