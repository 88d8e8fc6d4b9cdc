package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
)

// publishTo makes an agent of a tenant with triggers for events current.
func publishTo(c *Catalog, tenant, name string, number uint64, events ...string) {
	d := &agents.Definition{Name: name}
	for _, event := range events {
		d.Triggers = append(d.Triggers, agents.Trigger{Event: event})
	}
	c.addPublication(addressOf(tenant, name), Publication{Tenant: tenant, Number: number, Revision: fmt.Sprint(number)}, d)
}

// TestTriggeredAgents: an event starts the current definitions of the tenant and of the platform, of which
// the tenant's replace those with their name.
func TestTriggeredAgents(t *testing.T) {
	t.Parallel()
	c := newCatalog()
	publishTo(c, "", "intake", 1, "order", "order", "refund")
	publishTo(c, "", "audit", 2, "order")
	publishTo(c, "acme", "audit", 3, "refund")
	publishTo(c, "acme", "own", 4, "order")
	publishTo(c, "globex", "own", 5, "order")
	want := func(tenant, event, agents string) {
		t.Helper()
		var got []string
		for _, p := range c.Triggered(tenant, event) {
			got = append(got, p.Tenant+"/"+p.Name+"@"+p.Revision)
		}
		slices.Sort(got)
		if text := strings.Join(got, " "); text != agents {
			t.Errorf("agents of %q for %s = %q, want %q", tenant, event, text, agents)
		}
	}
	want("acme", "order", "/intake@1 acme/own@4")
	want("acme", "refund", "/intake@1 acme/audit@3")
	want("initech", "order", "/audit@2 /intake@1")
	want("", "order", "/audit@2 /intake@1")
	want("acme", "other", "")
	publishTo(c, "", "intake", 6, "refund")
	publishTo(c, "acme", "own", 7)
	publishTo(c, "", "audit", 1, "late") // a watch that began again delivers an earlier publication
	want("acme", "order", "")
	want("acme", "late", "")
	want("globex", "refund", "/intake@6")
	want("initech", "order", "/audit@2")
}

// BenchmarkTriggered looks for the agents of one event among 10,000 agents.
func BenchmarkTriggered(b *testing.B) {
	c := newCatalog()
	for t := range 200 {
		for i := range 50 {
			publishTo(c, fmt.Sprintf("t%d", t), fmt.Sprintf("agent-%d", i), uint64(t*50+i), fmt.Sprintf("event-%d", i%10))
		}
	}
	for b.Loop() {
		c.Triggered("t7", "event-3")
	}
}
