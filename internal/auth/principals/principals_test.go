package principals_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/auth/principals"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens principals of a text, and returns the name of their file.
func open(t *testing.T, text string) (p *principals.Principals, file string, err error) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "principals.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err = principals.Open(file, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Cleanup(p.Close)
	}
	return p, file, err
}

// TestPrincipalsAreSeparate: a principal is found by its kind, its tenant and its subject together.
func TestPrincipalsAreSeparate(t *testing.T) {
	t.Parallel()
	p, _, err := open(t, "approvers:\n  - {subject: alice, tenant: shop, roles: [finance]}\n  - {subject: bob}\nservices:\n  - {subject: report, tenant: shop, roles: [reports]}\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		kind            principals.Kind
		tenant, subject string
		wantRoles       string // "-" = there is no such principal
	}{
		{principals.Approver, "shop", "alice", "finance"},
		{principals.Approver, "default", "bob", ""},
		{principals.Service, "shop", "report", "reports"},
		{principals.Service, "shop", "alice", "-"},
		{principals.Approver, "shop", "report", "-"},
		{principals.Approver, "default", "alice", "-"},
		{principals.Approver, "shop", "", "-"},
	} {
		got, ok := p.Find(tt.kind, tt.tenant, tt.subject)
		if roles := strings.Join(got.Roles, " "); ok != (tt.wantRoles != "-") || ok && (roles != tt.wantRoles || got.Subject != tt.subject || got.Tenant != tt.tenant) {
			t.Errorf("%s %s/%s: got %+v, %v, want the roles %q", tt.kind, tt.tenant, tt.subject, got, ok, tt.wantRoles)
		}
	}
}

func TestInvalidFilesOfPrincipalsAreRejected(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"approvers: [{roles: [a]}]":                                             "approvers[0]: subject is missing",
		"services: [{subject: a}, {subject: a, tenant: default}]":               "services[1]: repeats the subject",
		"approvers: [{subject: a, role: b}]":                                    "must have lists under approvers and services",
		"- {subject: a}":                                                        "must have lists under approvers and services",
		"approvers: [{subject: \"a\\u0000\"}]":                                  "control characters",
		"approvers:\n" + strings.Repeat("  - {subject: a}\n", 10_001):           "at most 10000 entries",
		"# " + strings.Repeat("x", 1<<20) + "\napprovers: [{subject: a}]":       "at most 1048576 bytes",
		fmt.Sprintf("approvers: [{subject: %q}]", strings.Repeat("a", 257)+"a"): "more than 256",
	} {
		if _, _, err := open(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, want %q in it", text, err, want)
		}
	}
}

// TestChangedFileChangesRoles: a change of the file takes effect while the process runs, and an
// invalid file changes nothing.
func TestChangedFileChangesRoles(t *testing.T) {
	t.Parallel()
	p, file, err := open(t, "approvers: [{subject: alice, roles: [finance]}, {subject: bob}]")
	if err != nil {
		t.Fatal(err)
	}
	until := func(text string, holds func() bool) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ticker, deadline := time.NewTicker(50*time.Millisecond), time.After(20*time.Second)
		defer ticker.Stop()
		for !holds() {
			select {
			case <-ticker.C:
			case <-deadline:
				t.Fatalf("after %q: the principals stay the same", text)
			}
		}
	}
	until("approvers: [{subject: alice, roles: [sales]}]", func() bool {
		alice, _ := p.Find(principals.Approver, "default", "alice")
		_, hasBob := p.Find(principals.Approver, "default", "bob")
		return slices.Equal(alice.Roles, []string{"sales"}) && !hasBob
	})
	if err := os.WriteFile(file, []byte("approvers: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	until("approvers: [{subject: alice, roles: [sales]}, {subject: carol}]", func() bool {
		_, hasCarol := p.Find(principals.Approver, "default", "carol")
		return hasCarol
	})
}

func TestNoFileHasNoPrincipals(t *testing.T) {
	t.Parallel()
	p, err := principals.Open("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, ok := p.Find(principals.Approver, "default", "alice"); ok {
		t.Error("Find without a file: got a principal, want none")
	}
	if _, err := principals.Open(filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler)); !os.IsNotExist(err) {
		t.Errorf("Open of a missing file: got %v, want one that does not exist", err)
	}
}
