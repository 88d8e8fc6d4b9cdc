package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// authors are the authors of agents, by their names.
type authors map[string][]*auth.Principal

var errNoAuthor = errors.New("no author")

// Authors implements Publications.
func (a authors) Authors(_ context.Context, tenant string, agent stream.AgentRevision) ([]*auth.Principal, error) {
	if found := a[tenant+"/"+agent.Agent]; found != nil {
		return found, nil
	}
	return nil, errNoAuthor
}

// TestRulesDistrustTenantAgents: after agents of the tenant have taken part, the rules of an agent
// of the platform see their authors as contributors, and no state. Rules of the tenant's agents do
// not change, and neither does the snapshot.
func TestRulesDistrustTenantAgents(t *testing.T) {
	t.Parallel()
	person := func(subject string) *auth.Principal { return &auth.Principal{Tenant: "t", Subject: subject} }
	f := &folder{snap: Snapshot{State: json.RawMessage(`{"risk":0}`)}}
	f.addContributor(person("user"), false)
	f.addContributor(person("ada"), true) // has decided about a call
	f.addTenantAgents(stream.AgentRevision{Agent: "payer", Revision: "5a"})
	platform, known := stream.AgentRevision{Agent: "payer", Revision: "5a"}, authors{"t/lure": {person("ada"), nil}, "t/payer": {person("ben")}}
	if seen, err := f.snap.ForRules(t.Context(), known, "t", platform); seen != &f.snap || err != nil {
		t.Errorf("without agents of the tenant: got %+v, %v, want the snapshot itself", seen, err)
	}
	remembered := []stream.Remembered{{Tool: "pay"}}
	for name, tt := range map[string]struct {
		joins          string
		wantAuthors    []string
		wantRemembered bool
	}{
		"another name":  {"lure", []string{"user", "ada", ""}, true},
		"the same name": {"payer", []string{"user", "ben"}, false},
	} {
		f := &folder{snap: f.snap}
		f.snap.Remembered = remembered
		f.addTenantAgents(stream.AgentRevision{Agent: tt.joins, Revision: "tenant-1"})
		if f.snap.Remembered != nil {
			t.Errorf("%s: a new agent of the tenant leaves approvals remembered", name)
		}
		f.snap.Remembered = remembered
		f.addTenantAgents(stream.AgentRevision{Agent: tt.joins, Revision: "tenant-1"})
		if len(f.snap.TenantAgents) != 1 || f.snap.Remembered == nil {
			t.Errorf("%s: a known agent of the tenant: got %+v, want no change", name, f.snap)
		}
		seen, err := f.snap.ForRules(t.Context(), known, "t", platform)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range seen.Authors() {
			if p == nil {
				p = person("")
			}
			got = append(got, p.Subject)
		}
		if !slices.Equal(got, tt.wantAuthors) || seen.AgentState() != nil || (seen.Remembered != nil) != tt.wantRemembered {
			t.Errorf("%s: the platform's rules see the authors %q, the state %s and %v; want %q, no state, remembered: %t", name, got, seen.AgentState(), seen.Remembered, tt.wantAuthors, tt.wantRemembered)
		}
		if len(f.snap.Authors()) != 1 || string(f.snap.AgentState()) != `{"risk":0}` || f.snap.Remembered == nil {
			t.Errorf("%s: the snapshot has changed: %+v", name, f.snap)
		}
		if seen, err := f.snap.ForRules(t.Context(), known, "t", f.snap.TenantAgents[0]); seen != &f.snap || err != nil {
			t.Errorf("%s: rules of the tenant: got %+v, %v, want the snapshot itself", name, seen, err)
		}
		if _, err := f.snap.ForRules(t.Context(), authors{}, "t", platform); !errors.Is(err, errNoAuthor) {
			t.Errorf("%s: without authors: got %v, want %v", name, err, errNoAuthor)
		}
	}
}
