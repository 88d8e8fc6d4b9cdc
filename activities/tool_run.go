package activities

import (
	"context"
	"slices"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// runOfCall returns what a tool learns about the run of its call. snap has the contributors of the
// moment before the call: some may have steered the run after the model made the call. It lacks the
// authors of decisions about this call, which count from the end of the call on. A tool of a
// platform's agent also learns of the authors of the tenant's agents (Snapshot.ForRules).
func (a *Activities) runOfCall(ctx context.Context, in runs.ToolCall, inquiry *inquiry, snap *snapshot.Snapshot) (tools.Run, error) {
	snap, err := snap.ForRules(ctx, a.Agents, in.Run.Tenant, stream.AgentRevision{Agent: in.Agent, Revision: in.Revision})
	if err != nil {
		return tools.Run{}, err
	}
	run := tools.Run{
		Tenant: in.Run.Tenant, Requester: subjectOf(snap.Requester), Contributors: []string{subjectOf(snap.Requester)},
		Thread: in.Run.Thread, ID: stream.ShownRunID(in.Run.ID), Agent: in.Agent,
	}
	add := func(p *auth.Principal) {
		if subject := subjectOf(p); !slices.Contains(run.Contributors, subject) {
			run.Contributors = append(run.Contributors, subject)
		}
	}
	for _, c := range snap.Contributors {
		add(c.Principal)
	}
	for _, proposal := range inquiry.proposals(in) {
		decision, err := a.Log.Decision(ctx, proposal)
		if err != nil {
			return run, err
		}
		if decision.HasContent() {
			add(decision.By)
		}
	}
	return run, nil
}

// subjectOf returns the subject of a principal; "" = an anonymous caller.
func subjectOf(p *auth.Principal) string {
	if p == nil {
		return ""
	}
	return p.Subject
}

// proposals returns the records with the decisions that brought content into the call: edited
// arguments, or answers to its questions.
func (q *inquiry) proposals(in runs.ToolCall) []uint64 {
	var all []uint64
	if in.Decision != nil && in.Decision.Proposal > 0 && in.QuestionRecord == 0 {
		all = append(all, in.Decision.Proposal)
	}
	for _, r := range q.replies {
		if r.Proposal > 0 {
			all = append(all, r.Proposal)
		}
	}
	return all
}
