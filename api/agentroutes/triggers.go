package agentroutes

import (
	"context"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/auth/policy"
)

// Trigger is a trigger in the answer about its agent: for which events a run starts, on which thread,
// and as whom. It has no input.
type Trigger struct {
	Event string `json:"event"`
	// Match has the values that the data of the event must have, by their paths.
	Match map[string]any `json:"match,omitempty"`
	// Thread is a template of the ID of the thread; "" = each event has a thread of its own.
	Thread string `json:"thread,omitempty"`
	RunAs  string `json:"runAs,omitempty"` // "" = an anonymous caller
	// OnBusy is what happens if the thread has another active run; "" = enqueue.
	OnBusy string `json:"onBusy,omitempty"`
}

// triggers returns the triggers of an agent, if the caller may read its definition.
func (r *Routes) triggers(ctx context.Context, p catalog.Published) []Trigger {
	if len(p.Triggers) == 0 || r.Access.CheckAgent(ctx, p.Tenant, p.Name, policy.ReadDefinition) != nil {
		return nil
	}
	var all []Trigger
	for _, t := range p.Triggers {
		all = append(all, Trigger{Event: t.Event, Match: t.Match, Thread: t.Thread, RunAs: t.RunAs, OnBusy: t.OnBusy})
	}
	return all
}
