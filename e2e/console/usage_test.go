package console

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestUsage: the administrator of the platform reads the usage of all tenants. That of a tenant
// reads the usage of its own, and is not offered what the API would refuse, also at an address that
// asks for it. The page of the system tells whose it is.
func TestUsage(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(keys, []byte(`keys:
  - {key: `+keyOf("ada")+`, tenant: shop, subject: ada, roles: [perdure-tenant-admin]}
  - {key: `+keyOf("bob")+`, tenant: default, subject: bob, roles: [perdure-platform-admin]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = []string{"PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS=" + keys}
	p.InspectAtEnd(t)
	p.Start(t)
	for _, user := range []string{"ada", "bob"} {
		//nolint:bodyclose // WantEvents closes it
		kit.WantEvents(t, p.RequestAs(t, keyOf(user), http.MethodPost, "/v1/agents/demo/runs", kit.NewInput("What is 12*7?")))
	}
	open := func(user string) *kit.Tab {
		tab := kit.OpenTab(t, p.URL("/console/usage?by=tenant"), "403 (Forbidden)") // of the system, for ada
		tab.Type("input[type=password]", keyOf(user))
		tab.Press("Enter")
		return tab
	}
	admin := open("bob")
	admin.Await("table[aria-label='Usage by tenant']", "shop")
	admin.Await("table[aria-label='Usage by tenant']", "default")

	tab := open("ada")
	tab.Await("table[aria-label='Usage by agent']", "demo")
	tab.Await("role=button[name=/Group/]", "By agent")
	tab.AwaitGone("[role=alert]")
	tab.Click("role=button[name=/Group/]")
	tab.Await("role=option[name='By model']", "")
	tab.AwaitGone("role=option[name='By tenant']")
	tab.WantAccessible()
	tab.Press("Escape")
	tab.Click("nav >> text=System")
	tab.Await("main", "its administrators see them here")
	tab.Await("table[aria-label=Quotas]", "streams")
	tab.AwaitGone("[role=alert]")
	tab.WantAccessible()
}

// keyOf returns the API key of a user.
func keyOf(user string) string { return "the-secret-key-of-" + user }
