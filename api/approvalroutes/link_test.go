package approvalroutes

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
)

func as(t *testing.T, subject string, roles ...string) context.Context {
	t.Helper()
	return auth.With(t.Context(), auth.Principal{Tenant: "shop", Subject: subject, Roles: roles})
}

// TestWhoseALinkIs: a link belongs to the caller that creates it. A program with the links role may
// create links for other subjects.
func TestWhoseALinkIs(t *testing.T) {
	t.Parallel()
	s := &Routes{adminRole: "boss"}
	for name, tt := range map[string]struct {
		ctx     context.Context
		in      linkRequest
		subject string
		roles   []string
		status  int
	}{
		"own":                    {as(t, "ada", "finance"), linkRequest{}, "ada", []string{"finance"}, 0},
		"own, by name":           {as(t, "ada", "finance"), linkRequest{Subject: "ada"}, "ada", []string{"finance"}, 0},
		"another subject":        {as(t, "ada", "finance"), linkRequest{Subject: "bob"}, "", nil, http.StatusForbidden},
		"with more roles":        {as(t, "ada"), linkRequest{Subject: "ada", Roles: []string{"finance"}}, "", nil, http.StatusForbidden},
		"anonymous, with roles":  {as(t, "ada"), linkRequest{Roles: []string{"finance"}}, "", nil, http.StatusForbidden},
		"by a program":           {as(t, "bot", roleLinks), linkRequest{Subject: "bob", Roles: []string{"finance"}}, "bob", []string{"finance"}, 0},
		"by an administrator":    {as(t, "root", "boss"), linkRequest{Subject: "bob"}, "bob", nil, 0},
		"by a program, no roles": {as(t, "bot", roleLinks), linkRequest{Subject: "bob"}, "bob", nil, 0},
		"without authentication": {t.Context(), linkRequest{Subject: "bob"}, "bob", nil, 0},
	} {
		tt.in.Decision = "approve"
		l, err := s.linkOf(tt.ctx, tt.in, time.Now())
		var p *problem.Problem
		if tt.status != 0 {
			if !errors.As(err, &p) || p.Status != tt.status {
				t.Errorf("%s: got %v, want status %d", name, err, tt.status)
			}
			continue
		}
		if err != nil || l.Subject != tt.subject || !slices.Equal(l.Roles, tt.roles) {
			t.Errorf("%s: got %+v, %v", name, l, err)
		}
	}
}
