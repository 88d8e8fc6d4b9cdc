package activities

import (
	"context"
	"slices"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream/snapshot"
)

// audience returns the part of the conversation that an agent is told. The run's own agent is told
// all messages except for those of subagents; a subagent its task and its own messages. The agent
// of a step is told as much, or only its prompt and its own messages.
func (a *Activities) audience(ctx context.Context, in runs.ModelCall, thread *snapshot.Snapshot) ([]snapshot.Entry, error) {
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
		if isHeardBy(in.Child, e) && e.Scope != runs.ScopeLimit {
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

// askAgain inserts the prompts of a step's agent at their places: at the beginning, or after an
// answer that was not valid.
func (a *Activities) askAgain(ctx context.Context, in runs.ModelCall, entries []snapshot.Entry) ([]snapshot.Entry, error) {
	if in.Place == nil {
		return entries, nil
	}
	for _, seq := range in.Place.Prompts {
		var k storedAdvance
		if err := a.Log.Kept(ctx, runOf(in.Run).Thread, seq, &k); err != nil {
			return nil, err
		}
		if k.Prompt == "" && !in.Place.Isolated { // it only names the agent whose step it is
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
