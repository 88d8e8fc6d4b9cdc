package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file has the variables that expressions of a pipeline see: input, messages, state, caller,
// items.

// buildEnv returns the variables. It reads the input, and the items of the branches around the
// position, from the log. It also sets adv.userText.
func (adv *advancer) buildEnv(ctx context.Context) (pipeline.Env, error) {
	env := pipeline.Env{State: adv.thread.State, Now: adv.in.Now}
	var err error
	if env.Input, env.Caller, err = adv.readInput(ctx); err != nil {
		return env, err
	}
	// An empty conversation is [] for expressions, not null.
	messages := []agui.Message{}
	for _, e := range adv.thread.Entries {
		if isVisibleTo(adv.in.Child, e) && e.Visibility != stream.VisibleToStep {
			messages = append(messages, e.Message)
		}
	}
	if env.Messages, err = json.Marshal(messages); err != nil {
		return env, fmt.Errorf("activities: encode messages: %w", err)
	}
	env.Recall = func(path string, record uint64) (pipeline.Done, error) { return adv.readDone(ctx, path, record) }
	// Items[i] is the record of the advance that began the i-th branch, which keeps the items of
	// all its siblings.
	for i, branches := range adv.in.Position.TreePosition.Branch {
		var stored storedAdvance
		if err := adv.activities.Log.Kept(ctx, adv.place.Run.Thread, adv.in.Position.Items[i], &stored); err != nil {
			return env, err
		}
		// A branch of a parallel step has no item.
		item := json.RawMessage("null")
		if branches.Index < len(stored.Items) {
			item = stored.Items[branches.Index]
		}
		env.Items = append(env.Items, item)
		// A branch that compensates learns at its beginning what the branch had done that it
		// compensates.
		begins := i == len(adv.in.Position.TreePosition.Branch)-1 && adv.in.Position.Event != nil && adv.in.Position.Event.Kind == pipeline.EventBegun
		if begins && branches.Index < len(stored.Ends) {
			if env.Ended, err = adv.readBranchEnd(ctx, stored.Ends[branches.Index]); err != nil {
				return env, err
			}
		}
	}
	return env, nil
}

// readInput returns the variable input and the caller: the accepted input of the run that began the
// pipeline, with the messages that were new. For a pipeline that is a subagent, the only message is
// its task. It sets adv.userText.
func (adv *advancer) readInput(ctx context.Context) (json.RawMessage, *agents.Caller, error) {
	var in agui.RunAgentInput
	var caller *agents.Caller
	if seq := adv.in.Position.Input; seq > 0 {
		proposed, err := adv.activities.Log.Input(ctx, seq)
		if err != nil {
			return nil, nil, err
		}
		in, caller = proposed.Input, (*agents.Caller)(proposed.Requester)
		// The proposal has the input without messages. Only those that the thread did not have are
		// in the tail.
		for _, s := range proposed.Accepted.Tail {
			if s.Message != nil {
				in.Messages = append(in.Messages, *s.Message)
			}
		}
		if proposed.Task != nil {
			in.Messages = append(in.Messages, *proposed.Task)
		}
	}
	if task := adv.in.Position.Child; task != nil {
		text, err := adv.activities.task(ctx, task, adv.thread)
		if err != nil {
			return nil, nil, err
		}
		in.Messages = []agui.Message{{ID: task.CallID, Role: agui.RoleUser, Content: agui.TextContent(text)}}
	}
	for _, m := range in.Messages {
		if m.Role == agui.RoleUser {
			adv.userText = m.Content.Text()
		}
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, nil, fmt.Errorf("activities: encode input: %w", err)
	}
	return raw, caller, nil
}

// isVisibleTo reports whether an agent receives a message: the run's agent (child nil) all but
// those of subagents, a subagent its own, a branch its own and those of the agent that it belongs
// to.
func isVisibleTo(child *runs.Child, e snapshot.Entry) bool {
	owner := e.Message.SubagentRunID
	switch {
	case child == nil:
		return owner == ""
	case owner == subagentID(child.CallID):
		return true
	case child.BranchPath == "":
		return false
	case child.ParentCallID == "":
		return owner == ""
	}
	return owner == subagentID(child.ParentCallID)
}
