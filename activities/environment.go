package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file has the variables that expressions of a pipeline see: input, messages, state, caller,
// items.

// env returns the variables. It reads the input, and the items of the branches around the position,
// from the log. It also sets a.userText.
func (a *advancer) env(ctx context.Context) (pipeline.Env, error) {
	env := pipeline.Env{State: a.thread.State, Now: a.in.Now}
	var err error
	if env.Input, env.Caller, err = a.input(ctx); err != nil {
		return env, err
	}
	// An empty conversation is [] for expressions, not null.
	messages := []agui.Message{}
	for _, e := range a.thread.Entries {
		if isVisibleTo(a.in.Child, e) {
			messages = append(messages, e.Message)
		}
	}
	if env.Messages, err = json.Marshal(messages); err != nil {
		return env, fmt.Errorf("activities: encode messages: %w", err)
	}
	env.Recall = func(path string, record uint64) (pipeline.Done, error) { return a.recall(ctx, path, record) }
	// Items[i] is the record of the advance that began the i-th branch, which keeps the items of
	// all its siblings.
	for i, fork := range a.in.Position.Cursor.Branch {
		var k storedAdvance
		if err := a.activities.Log.Kept(ctx, a.place.Run.Thread, a.in.Position.Items[i], &k); err != nil {
			return env, err
		}
		// A branch of a parallel step has no item.
		item := json.RawMessage("null")
		if fork.Index < len(k.Items) {
			item = k.Items[fork.Index]
		}
		env.Items = append(env.Items, item)
		// A branch that compensates learns at its beginning what the branch had done that it
		// compensates.
		begins := i == len(a.in.Position.Cursor.Branch)-1 && a.in.Position.Event != nil && a.in.Position.Event.Kind == pipeline.EventBegun
		if begins && fork.Index < len(k.Ends) {
			if env.Ended, err = a.branchEnd(ctx, k.Ends[fork.Index]); err != nil {
				return env, err
			}
		}
	}
	return env, nil
}

// input returns the variable input and the caller: the accepted input of the run that began the
// pipeline, with the messages that were new. For a pipeline that is a subagent, the only message is
// its task. It sets a.userText.
func (a *advancer) input(ctx context.Context) (json.RawMessage, *agents.Caller, error) {
	var in agui.RunAgentInput
	var by *agents.Caller
	if seq := a.in.Position.Input; seq > 0 {
		proposed, err := a.activities.Log.Input(ctx, seq)
		if err != nil {
			return nil, nil, err
		}
		in, by = proposed.Input, (*agents.Caller)(proposed.Requester)
		// The proposal has the input without messages. Only those that the thread did not have are
		// in the tail.
		for _, s := range proposed.Accepted.Tail {
			if s.Message != nil {
				in.Messages = append(in.Messages, *s.Message)
			}
		}
	}
	if task := a.in.Position.Child; task != nil {
		text, err := a.activities.task(ctx, task, a.thread)
		if err != nil {
			return nil, nil, err
		}
		in.Messages = []agui.Message{{ID: task.CallID, Role: agui.RoleUser, Content: agui.TextContent(text)}}
	}
	for _, m := range in.Messages {
		if m.Role == agui.RoleUser {
			a.userText = m.Content.Text()
		}
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, nil, fmt.Errorf("activities: encode input: %w", err)
	}
	return raw, by, nil
}

// isVisibleTo reports whether an agent receives a message: the run's agent (b nil) all but those of
// subagents, a subagent its own, a branch its own and those of the agent that it belongs to.
func isVisibleTo(b *runs.Child, e snapshot.Entry) bool {
	owner := e.Message.SubagentRunID
	switch {
	case b == nil:
		return owner == ""
	case owner == subagentID(b.CallID):
		return true
	case b.BranchPath == "":
		return false
	case b.ParentCallID == "":
		return owner == ""
	}
	return owner == subagentID(b.ParentCallID)
}
