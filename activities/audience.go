package activities

import (
	"context"
	"slices"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream/snapshot"
)

// heard is the part of a thread's conversation that an agent takes part in: the run's own agent in what no
// subagent says, a subagent in its task and what it has said since. An agent that is a step hears as much,
// or only what it is asked and has said there.
func (a *Activities) heard(ctx context.Context, in runs.ModelCall, thread *snapshot.Snapshot) ([]snapshot.Entry, error) {
	if in.Place != nil && in.Place.Isolated {
		return a.heardAlone(ctx, in, thread)
	}
	var entries []snapshot.Entry
	if b := in.Child; b != nil && b.BranchPath == "" {
		task, err := a.task(ctx, b, thread)
		if err != nil {
			return nil, err
		}
		entries = append(entries, prompt.Private(b.CallID, task))
	}
	for _, e := range thread.Entries {
		if heardBy(in.Child, e) && e.Scope != runs.ScopeLimit {
			entries = append(entries, e)
		}
	}
	return a.askAgain(ctx, in, entries)
}

func (a *Activities) heardAlone(ctx context.Context, in runs.ModelCall, thread *snapshot.Snapshot) ([]snapshot.Entry, error) {
	var entries []snapshot.Entry
	for _, e := range thread.Entries {
		if e.Scope == in.Place.Scope {
			entries = append(entries, e)
		}
	}
	return a.askAgain(ctx, in, entries)
}

// askAgain puts what the agent of a step is asked where it was asked: at the beginning, or behind an answer of
// its own that was not good enough.
func (a *Activities) askAgain(ctx context.Context, in runs.ModelCall, entries []snapshot.Entry) ([]snapshot.Entry, error) {
	if in.Place == nil {
		return entries, nil
	}
	for _, seq := range in.Place.Prompts {
		var k kept
		if err := a.Log.Kept(ctx, runOf(in.Run).Thread, seq, &k); err != nil {
			return nil, err
		}
		if k.Prompt == "" && !in.Place.Isolated { // it only says by whom the agent is asked
			continue
		}
		at := 0
		if k.Behind != "" {
			at = 1 + slices.IndexFunc(entries, func(e snapshot.Entry) bool { return e.Message.ID == k.Behind })
		}
		entries = slices.Insert(entries, at, prompt.Private(in.ID, k.Prompt))
	}
	return entries, nil
}
