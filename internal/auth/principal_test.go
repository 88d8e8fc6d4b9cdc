package auth_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/auth"
)

func TestInvalidPrincipalsAreRejected(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", auth.MaxNameBytes)
	for _, p := range []auth.Principal{
		{Tenant: "shop"}, {Tenant: long, Subject: long, Roles: []string{long}}, {Tenant: "Bücher GmbH", Subject: "ann@example.com"},
		{Tenant: "t", Roles: roles(auth.MaxRoles)},
	} {
		if err := p.Check(); err != nil {
			t.Errorf("%.40v: %v", p, err)
		}
	}
	for _, p := range []auth.Principal{
		{}, {Subject: "ann"}, {Tenant: long + "x"}, {Tenant: "t", Subject: long + "x"}, {Tenant: "t", Roles: []string{long + "x"}},
		{Tenant: "t", Roles: roles(auth.MaxRoles + 1)}, {Tenant: "a\x00b"}, {Tenant: "a\nb"}, {Tenant: "t", Subject: "ann\u200b"},
		{Tenant: "t", Subject: "\u202enna"}, {Tenant: "\xff"}, {Tenant: "t", Subject: " ann"}, {Tenant: "t", Roles: []string{"a\x7f"}},
		{Tenant: " "},
	} {
		if err := p.Check(); !errors.Is(err, auth.ErrInvalid) {
			t.Errorf("Check of %.40q = %v, want %v", p, err, auth.ErrInvalid)
		}
	}
}

// roles returns a number of roles.
func roles(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("role-%d", i)
	}
	return list
}
