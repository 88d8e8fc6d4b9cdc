package audit

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/auth"
)

func TestActorHasBoundedRoles(t *testing.T) {
	t.Parallel()
	var roles []string
	for i := range 256 {
		roles = append(roles, fmt.Sprintf("role-%03d", 255-i))
	}
	a := ActorOf(auth.Principal{Tenant: "acme", Subject: "ann", Roles: roles})
	if len(a.Roles) != maxRoles || a.Roles[0] != "role-000" || a.RolesOmitted != 256-maxRoles {
		t.Errorf("got %d roles from %s, %d omitted; want the first %d of 256", len(a.Roles), a.Roles[0], a.RolesOmitted, maxRoles)
	}
}
