package catalog_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// names returns the names of agents with their tenants.
func names(all []catalog.Published) []string {
	var texts []string
	for _, p := range all {
		texts = append(texts, p.Tenant+"/"+p.Name)
	}
	return texts
}

// TestAuthorsArePublishers: all who have published a revision are its authors, each once, and those
// of another revision or tenant are not.
func TestAuthorsArePublishers(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	watch(t, ctx, c)
	var revisions []string
	for _, p := range []struct{ tenant, subject, instructions string }{
		{"acme", "ann", "one"}, {"acme", "bob", "two"}, {"acme", "cay", "one"}, {"acme", "bob", "two"}, {"acme", "ann", "one"}, {"globex", "gus", "one"},
	} {
		revision, err := c.Put(ctx, p.tenant, definition("clerk", p.instructions), &auth.Principal{Tenant: p.tenant, Subject: p.subject}, "", acceptAny)
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, revision)
	}
	for i, want := range [][]string{{"ann", "cay"}, {"bob"}} {
		var got []string
		authors, err := node().Authors(ctx, "acme", stream.AgentRevision{Agent: "clerk", Revision: revisions[i]})
		for _, p := range authors {
			got = append(got, p.Subject)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("authors of revision %d: got %q, %v, want %q", i+1, got, err, want)
		}
	}
	if all, err := c.Authors(ctx, "acme", stream.AgentRevision{Agent: "clerk", Revision: "tenant-x"}); !errors.Is(err, catalog.ErrUnknownRevision) {
		t.Errorf("authors of an unknown revision: got %v, %v, want %v", all, err, catalog.ErrUnknownRevision)
	}
}

// TestTenantsHaveOwnAgents: two tenants publish agents of the same name. Each sees its own one, also
// by its revision, and another tenant and the platform see none of them.
func TestTenantsHaveOwnAgents(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	watch(t, ctx, c)
	if _, err := c.Publish(ctx, definition("shared", "for all"), false); err != nil {
		t.Fatal(err)
	}
	tenants := []string{"acme", "acme.eu", "evil.*", "clerk", "a/b > c"} // some are no tokens of NATS
	for _, tenant := range tenants {
		revision, err := c.Put(ctx, tenant, definition("clerk", "of "+tenant), nil, "", acceptAny)
		if err != nil {
			t.Fatalf("publication of %q: %v", tenant, err)
		}
		if !stream.IsTenantRevision(revision) || strings.TrimPrefix(revision, "tenant-") != definition("clerk", "of "+tenant).Revision() {
			t.Errorf("revision of %q = %s, want that of the definition, marked as a tenant's", tenant, revision)
		}
	}
	other := node() // it has only the data of the bucket
	watch(t, ctx, other)
	for _, c := range []*catalog.Catalog{c, other} {
		for _, tenant := range tenants {
			p, err := c.Current(tenant, "clerk")
			if err != nil || p.Tenant != tenant || p.Instructions != "of "+tenant {
				t.Errorf("Current of %q = %+v, %v, want its own agent", tenant, p, err)
			}
			if p, err := c.Latest(ctx, tenant, "clerk"); err != nil || p.Tenant != tenant || p.Instructions != "of "+tenant {
				t.Errorf("Latest of %q = %+v, %v, want its own agent", tenant, p, err)
			}
			if got, want := names(c.List(tenant)), []string{tenant + "/clerk", "/shared"}; !slices.Equal(got, want) {
				t.Errorf("List of %q = %q, want %q", tenant, got, want)
			}
			if list, err := c.Publications(tenant, "clerk"); err != nil || len(list) != 1 || list[0].Tenant != tenant {
				t.Errorf("Publications of %q = %+v, %v, want one of the tenant", tenant, list, err)
			}
			if d, err := c.Revision(ctx, tenant, "clerk", p.Revision); err != nil || d.Instructions != "of "+tenant {
				t.Errorf("Revision of %q = %+v, %v, want its own definition", tenant, d, err)
			}
		}
		for _, tenant := range []string{"", "globex"} {
			if p, err := c.Current(tenant, "clerk"); !errors.Is(err, catalog.ErrUnknownAgent) {
				t.Errorf("Current of %q = %+v, %v, want %v", tenant, p, err, catalog.ErrUnknownAgent)
			}
			if p, err := c.Latest(ctx, tenant, "clerk"); !errors.Is(err, catalog.ErrUnknownAgent) {
				t.Errorf("Latest of %q = %+v, %v, want %v", tenant, p, err, catalog.ErrUnknownAgent)
			}
			if got, want := names(c.List(tenant)), []string{"/shared"}; !slices.Equal(got, want) {
				t.Errorf("List of %q = %q, want %q", tenant, got, want)
			}
		}
		if got := []int{c.Count(""), c.Count("acme"), c.Count("globex"), c.TenantsWith("clerk")}; !slices.Equal(got, []int{1, 1, 0, len(tenants)}) {
			t.Errorf("numbers of agents = %d", got)
		}
		if c.Bytes("acme") < int64(len("of acme")) || c.Bytes("") == 0 || c.Bytes("globex") != 0 {
			t.Errorf("bytes of definitions: got %d of acme, %d of the platform and %d of globex", c.Bytes("acme"), c.Bytes(""), c.Bytes("globex"))
		}
	}
	if all, err := other.Names(ctx); err != nil || !slices.Equal(all, []string{"shared"}) {
		t.Errorf("Names = %q, %v, want only the agent of the platform", all, err)
	}
	acme, err := other.Current("acme", "clerk")
	if err != nil {
		t.Fatal(err)
	}
	if d, err := other.Revision(ctx, "globex", "clerk", acme.Revision); !errors.Is(err, catalog.ErrUnknownRevision) {
		t.Errorf("Revision of acme for globex = %+v, %v, want %v", d, err, catalog.ErrUnknownRevision)
	}
}

// TestTenantsCannotTakeNamesOfThePlatform: a tenant's new agent cannot have the name of an agent of
// the platform. If the platform publishes the name later, the tenant keeps its agent, but references
// of the platform's agents mean the platform's.
func TestTenantsCannotTakeNamesOfThePlatform(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	watch(t, ctx, c)
	if _, err := c.Put(ctx, "", definition("helper", "the platform's"), nil, "", acceptAny); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, "acme", definition("helper", "acme's"), nil, "", acceptAny); !errors.Is(err, catalog.ErrTaken) {
		t.Errorf("a name of the platform: got %v, want %v", err, catalog.ErrTaken)
	}
	own, err := c.Put(ctx, "acme", definition("clerk", "the same"), nil, "", acceptAny)
	if err != nil {
		t.Fatal(err)
	}
	platform, err := c.Publish(ctx, definition("clerk", "the same"), false)
	if err != nil {
		t.Fatal(err)
	}
	if own == platform {
		t.Errorf("both have the revision %s, want different ones", own)
	}
	for _, tt := range []struct{ referrer, want string }{{own, "acme"}, {platform, ""}} {
		for name, find := range map[string]func(string) (catalog.Published, error){
			"Current": func(tenant string) (catalog.Published, error) { return c.Current(tenant, "clerk") },
			"Latest":  func(tenant string) (catalog.Published, error) { return c.Latest(ctx, tenant, "clerk") },
		} {
			if p, err := find(catalog.Referrer("acme", tt.referrer)); err != nil || p.Tenant != tt.want {
				t.Errorf("%s for a reference in revision %s: got an agent of %q, %v, want %q", name, tt.referrer, p.Tenant, err, tt.want)
			}
		}
	}
	if _, err := c.Put(ctx, "acme", definition("clerk", "changed"), nil, "", acceptAny); err != nil {
		t.Errorf("a further revision of the tenant's agent: %v", err)
	}
	if p, err := c.Current("acme", "clerk"); err != nil || p.Instructions != "changed" {
		t.Errorf("Current of acme = %+v, %v, want its changed agent", p, err)
	}
	if p, err := c.Current("globex", "clerk"); err != nil || p.Revision != platform {
		t.Errorf("Current of globex = %+v, %v, want the platform's", p, err)
	}
}
