package approvalroutes

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/auth/principals"
)

// callerContext returns a context with an authenticated caller.
func callerContext(t *testing.T, subject string, roles ...string) context.Context {
	t.Helper()
	return auth.With(t.Context(), auth.Principal{Tenant: "shop", Subject: subject, Roles: roles})
}

// TestLinksNameConfiguredApprovers: a link names nobody, or an approver whom the operator has
// configured. Only a program with the links role, or an administrator, may name another person than
// itself.
func TestLinksNameConfiguredApprovers(t *testing.T) {
	t.Parallel()
	policies, err := policy.New(policy.DefaultRoles)
	if err != nil {
		t.Fatal(err)
	}
	known, err := principals.Of([]auth.Principal{{Tenant: "shop", Subject: "ada"}, {Tenant: "shop", Subject: "bob"}, {Tenant: "other", Subject: "eve"}}, []auth.Principal{{Tenant: "shop", Subject: "report"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &Routes{access: &access.Guard{Policies: policies}, principals: known}
	for name, tt := range map[string]struct {
		ctx      context.Context
		subject  string
		wantCode string
	}{
		"nobody":                     {callerContext(t, "ada"), "", ""},
		"oneself":                    {callerContext(t, "ada"), "ada", ""},
		"oneself, not configured":    {callerContext(t, "carol"), "carol", "not_an_approver"},
		"another person":             {callerContext(t, "ada", "finance"), "bob", "forbidden"},
		"another person, anonymous":  {callerContext(t, "", "finance"), "bob", "forbidden"},
		"by a program":               {callerContext(t, "bot", "links"), "bob", ""},
		"by an administrator":        {callerContext(t, "root", policy.DefaultRoles.TenantAdmin), "bob", ""},
		"not configured":             {callerContext(t, "bot", "links"), "cfo", "not_an_approver"},
		"configured as a service":    {callerContext(t, "bot", "links"), "report", "not_an_approver"},
		"configured for another one": {callerContext(t, "bot", "links"), "eve", "not_an_approver"},
	} {
		l, err := s.linkOf(tt.ctx, linkRequest{Decision: "approve", Subject: tt.subject}, time.Now())
		if tt.wantCode != "" {
			if p := problem.Of(err); err == nil || p.Status != http.StatusForbidden || p.Code != tt.wantCode {
				t.Errorf("%s: got %v, want a 403 %s", name, err, tt.wantCode)
			}
			continue
		}
		caller, _ := auth.From(tt.ctx)
		if err != nil || l.Approver != tt.subject || l.Issuer != caller.Subject || l.Tenant != "shop" {
			t.Errorf("%s: got %+v, %v, want the approver %q and the issuer %q", name, l, err, tt.subject, caller.Subject)
		}
	}
}
