package snapshot

import (
	"context"
	"slices"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// addContributor adds a contributor, unless it is known. Contributors are never removed: the state,
// summaries and the texts of models may depend on content that the conversation has lost. A new
// author ends the remembered approvals, which were given without knowing what the author says.
func (f *folder) addContributor(p *auth.Principal, onlyDecides bool) {
	known := slices.IndexFunc(f.snap.Contributors, func(c Contributor) bool { return c.is(p) })
	switch {
	case known < 0:
		f.snap.Contributors = append(slices.Clip(f.snap.Contributors), Contributor{Principal: p, OnlyDecides: onlyDecides})
	case f.snap.Contributors[known].OnlyDecides && !onlyDecides:
		f.snap.Contributors = slices.Clone(f.snap.Contributors) // other snapshots share the list
		f.snap.Contributors[known].OnlyDecides = false
	default:
		return
	}
	if !onlyDecides {
		f.snap.Remembered = nil
	}
}

// addInputContributors adds the principals of an input: its requester, and the sender of one that
// only decides but changes what models receive.
func (f *folder) addInputContributors(in *stream.Input) {
	f.addContributor(in.Requester, false)
	if in.Sender != nil {
		f.addContributor(in.Sender, false)
	}
}

// addDecider adds the caller whose decision was carried out, if the decision has content.
func (f *folder) addDecider(ctx context.Context, d stream.Decided) error {
	if d.Proposal == 0 {
		return nil
	}
	decision, err := f.readDecision(ctx, d.Proposal)
	if err != nil || !decision.HasContent() {
		return err
	}
	f.addContributor(decision.By, decision.Kind != stream.DecisionToolResult && decision.Question == 0)
	return nil
}
