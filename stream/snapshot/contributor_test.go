package snapshot

import (
	"testing"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// TestContributorsGrow: a thread keeps each contributor once for each set of roles. A new author
// ends the remembered approvals; an approver, and a known author with roles in another order, do
// not.
func TestContributorsGrow(t *testing.T) {
	t.Parallel()
	person := func(subject string, roles ...string) *auth.Principal {
		return &auth.Principal{Tenant: "t", Subject: subject, Roles: roles}
	}
	f := &folder{}
	for _, tt := range []struct {
		name           string
		principal      *auth.Principal
		onlyDecides    bool
		wantCount      int
		wantAuthors    int
		wantRemembered bool
	}{
		{"the first author", person("ann", "a", "b"), false, 1, 1, false},
		{"the same roles in another order", person("ann", "b", "a"), false, 1, 1, true},
		{"an approver", person("bob"), true, 2, 1, true},
		{"the approver again", person("bob"), true, 2, 1, true},
		{"the approver speaks", person("bob"), false, 2, 2, false},
		{"the author decides", person("ann", "a", "b"), true, 2, 2, true},
		{"other roles", person("ann", "a"), false, 3, 3, false},
		{"an anonymous caller", nil, false, 4, 4, false},
		{"the anonymous caller again", nil, false, 4, 4, true},
	} {
		f.snap.Remembered = []stream.Remembered{{Tool: "pay"}}
		f.addContributor(tt.principal, tt.onlyDecides)
		if got := len(f.snap.Contributors); got != tt.wantCount {
			t.Errorf("%s: contributors = %d, want %d", tt.name, got, tt.wantCount)
		}
		if got := len(f.snap.Authors()); got != tt.wantAuthors {
			t.Errorf("%s: authors = %d, want %d", tt.name, got, tt.wantAuthors)
		}
		if got := len(f.snap.Remembered) > 0; got != tt.wantRemembered {
			t.Errorf("%s: approvals are remembered: %t, want %t", tt.name, got, tt.wantRemembered)
		}
	}
}
