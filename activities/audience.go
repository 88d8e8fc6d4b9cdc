package activities

import (
	"context"
	"slices"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// audience returns the entries of the conversation that an agent's model receives:
//
//   - the run's own agent: all messages except those of subagents
//   - a subagent: its task, then its own messages
//   - a branch: the messages of the agent that it belongs to, and its own
//   - the agent of an isolated step: its prompts and its own messages
//
// No model receives messages about limits, or messages of another step that is hidden. The prompts
// of a step's agent are inserted in their places.
func (a *Activities) audience(ctx context.Context, in runs.ModelCall, snap *snapshot.Snapshot) ([]snapshot.Entry, error) {
	if in.PipelineStep != nil && in.PipelineStep.Isolated {
		return a.isolatedAudience(ctx, in, snap)
	}
	var entries []snapshot.Entry
	// The task is not part of the conversation: it is the argument of the call, which belongs to
	// the calling agent.
	if child := in.Child; child != nil && child.BranchPath == "" {
		task, err := a.task(ctx, child, snap)
		if err != nil {
			return nil, err
		}
		entries = append(entries, prompt.Private(child.CallID, task))
	}
	for _, e := range snap.Entries {
		if isVisibleTo(in.Child, e) && (e.Visibility != stream.VisibleToStep || e.Scope == scopeOf(in.PipelineStep)) && e.Scope != runs.ScopeLimit {
			entries = append(entries, e)
		}
	}
	return a.insertPrompts(ctx, in, entries)
}

// isolatedAudience returns the entries of an isolated step: the messages with its scope, and its
// prompts.
func (a *Activities) isolatedAudience(ctx context.Context, in runs.ModelCall, snap *snapshot.Snapshot) ([]snapshot.Entry, error) {
	var entries []snapshot.Entry
	for _, e := range snap.Entries {
		if e.Scope == in.PipelineStep.Scope {
			entries = append(entries, e)
		}
	}
	return a.insertPrompts(ctx, in, entries)
}

// insertPrompts inserts the prompts of a step's agent, which are in records of advances and not in
// the conversation: at the beginning, or after the message that the record names. Agents outside of
// pipelines have none.
func (a *Activities) insertPrompts(ctx context.Context, in runs.ModelCall, entries []snapshot.Entry) ([]snapshot.Entry, error) {
	if in.PipelineStep == nil {
		return entries, nil
	}
	for _, seq := range in.PipelineStep.Prompts {
		var stored storedAdvance
		if err := a.Log.Kept(ctx, runOf(in.Run).Thread, seq, &stored); err != nil {
			return nil, err
		}
		// Such a record only names the agent whose step defines the output. An isolated agent has a
		// prompt even if it is empty.
		if stored.Prompt == "" && !in.PipelineStep.Isolated {
			continue
		}
		index := 0
		if stored.After != "" {
			index = 1 + slices.IndexFunc(entries, func(e snapshot.Entry) bool { return e.Message.ID == stored.After })
		}
		entries = slices.Insert(entries, index, prompt.Private(in.ID, stored.Prompt))
	}
	return entries, nil
}
