package approvalroutes

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
)

// callerContext returns a context with an authenticated caller.
func callerContext(t *testing.T, subject string, roles ...string) context.Context {
	t.Helper()
	return auth.With(t.Context(), auth.Principal{Tenant: "shop", Subject: subject, Roles: roles})
}

// TestLinkBelongsToCaller: a link belongs to the caller that creates it. A program with the links
// role may create links for other subjects.
func TestLinkBelongsToCaller(t *testing.T) {
	t.Parallel()
	policies, err := policy.New(policy.DefaultRoles)
	if err != nil {
		t.Fatal(err)
	}
	s := &Routes{access: &access.Guard{Policies: policies}}
	for name, tt := range map[string]struct {
		ctx         context.Context
		in          linkRequest
		wantSubject string
		wantRoles   []string
		wantStatus  int
	}{
		"own":                    {callerContext(t, "ada", "finance"), linkRequest{}, "ada", []string{"finance"}, 0},
		"own, by name":           {callerContext(t, "ada", "finance"), linkRequest{Subject: "ada"}, "ada", []string{"finance"}, 0},
		"another subject":        {callerContext(t, "ada", "finance"), linkRequest{Subject: "bob"}, "", nil, http.StatusForbidden},
		"with more roles":        {callerContext(t, "ada"), linkRequest{Subject: "ada", Roles: []string{"finance"}}, "", nil, http.StatusForbidden},
		"anonymous, with roles":  {callerContext(t, "ada"), linkRequest{Roles: []string{"finance"}}, "", nil, http.StatusForbidden},
		"by a program":           {callerContext(t, "bot", "links"), linkRequest{Subject: "bob", Roles: []string{"finance"}}, "bob", []string{"finance"}, 0},
		"by an administrator":    {callerContext(t, "root", policy.DefaultRoles.TenantAdmin), linkRequest{Subject: "bob"}, "bob", nil, 0},
		"by a program, no roles": {callerContext(t, "bot", "links"), linkRequest{Subject: "bob"}, "bob", nil, 0},
	} {
		tt.in.Decision = "approve"
		l, err := s.linkOf(tt.ctx, tt.in, time.Now())
		if tt.wantStatus != 0 {
			if err == nil || problem.Of(err).Status != tt.wantStatus {
				t.Errorf("%s: got %v, want status %d", name, err, tt.wantStatus)
			}
			continue
		}
		if err != nil || l.Subject != tt.wantSubject || !slices.Equal(l.Roles, tt.wantRoles) {
			t.Errorf("%s: got %+v, %v, want %s with the roles %q", name, l, err, tt.wantSubject, tt.wantRoles)
		}
	}
}
