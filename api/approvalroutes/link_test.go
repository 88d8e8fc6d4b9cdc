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

// A link is of whoever asks for it, unless that is a program that sends links to others.
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
		"one's own":               {as(t, "ada", "finance"), linkRequest{}, "ada", []string{"finance"}, 0},
		"one's own, by name":      {as(t, "ada", "finance"), linkRequest{Subject: "ada"}, "ada", []string{"finance"}, 0},
		"somebody else's":         {as(t, "ada", "finance"), linkRequest{Subject: "bob"}, "", nil, http.StatusForbidden},
		"with more roles":         {as(t, "ada"), linkRequest{Subject: "ada", Roles: []string{"finance"}}, "", nil, http.StatusForbidden},
		"nobody's, with roles":    {as(t, "ada"), linkRequest{Roles: []string{"finance"}}, "", nil, http.StatusForbidden},
		"a program's":             {as(t, "bot", roleLinks), linkRequest{Subject: "bob", Roles: []string{"finance"}}, "bob", []string{"finance"}, 0},
		"an administrator's":      {as(t, "root", "boss"), linkRequest{Subject: "bob"}, "bob", nil, 0},
		"a program's, of no role": {as(t, "bot", roleLinks), linkRequest{Subject: "bob"}, "bob", nil, 0},
		"where nobody is known":   {t.Context(), linkRequest{Subject: "bob"}, "bob", nil, 0},
	} {
		tt.in.Decision = "approve"
		l, err := s.linkOf(tt.ctx, tt.in, time.Now())
		var p *problem.Problem
		if tt.status != 0 {
			if !errors.As(err, &p) || p.Status != tt.status {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || l.Subject != tt.subject || !slices.Equal(l.Roles, tt.roles) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}
