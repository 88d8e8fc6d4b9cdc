package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// This file changes the state by what an agent's definition says about the results of its tools
// (state.results), and by the tool update_state (state.write). The change is in the same record as
// the result of the call: the log has both or neither.

// CustomStateUnchanged is the name of the custom event that tells clients that the result of a call
// has not changed the state. Its value has toolCallId, tool and reason.
const CustomStateUnchanged = "perdure.stateUnchanged"

// stateTool returns the tool with which the model changes the state; nil = the agent has none. The
// change itself is that of the definition, after the call (stateChange).
func stateTool(s agents.State) (tools.Tool, error) {
	if len(s.Write) == 0 {
		return nil, nil
	}
	properties := map[string]json.RawMessage{}
	for _, w := range s.Write {
		schema := w.Schema
		if len(schema) == 0 {
			schema = json.RawMessage("{}")
		}
		properties[w.ArgumentName()] = schema
	}
	parameters, err := json.Marshal(map[string]any{"type": "object", "minProperties": 1, "additionalProperties": false, "properties": properties})
	if err != nil {
		return nil, fmt.Errorf("activities: encode the parameters of %s: %w", agents.StateTool, err)
	}
	return tools.Guard(stateUpdate{parameters})
}

// stateUpdate is the tool update_state. It is idempotent: a call by itself has no effect.
type stateUpdate struct{ parameters json.RawMessage }

// Spec implements [tools.Tool].
func (u stateUpdate) Spec() tools.Spec {
	return tools.Spec{
		Name: agents.StateTool, Parameters: u.parameters, Idempotent: true,
		Description: "Changes the state that you share with the user's application. Set only the arguments that change.",
	}
}

// Call implements [tools.Tool].
func (stateUpdate) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Content: "The state was updated."}, nil
}

// withStateTool adds the state tool of an agent to its other tools. It has precedence over a tool
// of the same name that a pattern matches.
func withStateTool(s agents.State, offered []tools.Tool) ([]tools.Tool, error) {
	own, err := stateTool(s)
	if own == nil || err != nil {
		return offered, err
	}
	all := make([]tools.Tool, 0, len(offered)+1)
	for _, t := range offered {
		if t.Spec().Name != agents.StateTool {
			all = append(all, t)
		}
	}
	return append(all, own), nil
}

// stateChange is the change of the state that follows a successful call.
type stateChange struct {
	ops       []agents.Op
	variables map[string]any
	// reported are the changes that the tool itself has reported.
	reported []json.RawMessage
	// ofModel means that the change is the purpose of the call: its failure is that of the call.
	ofModel bool
}

// newStateChange returns the change that the definition requires after a call; nil = none.
// reported are the changes of the tool itself.
func newStateChange(s agents.State, call agui.ToolCall, result tools.Result, reported []json.RawMessage) *stateChange {
	args, _ := expression.Decode(json.RawMessage(call.Arguments)).(map[string]any)
	ops := s.Changes(call.Name, func(name string) bool { _, ok := args[name]; return ok })
	if ops == nil {
		return nil
	}
	c := &stateChange{ops: ops, ofModel: call.Name == agents.StateTool, reported: reported}
	c.variables = map[string]any{"args": args, "result": result.Content}
	if args == nil {
		c.variables["args"] = map[string]any{}
	}
	if raw := json.RawMessage(result.Content); json.Valid(raw) {
		c.variables["result"] = expression.Decode(raw)
	}
	return c
}

// event returns the event that changes a state, in which the tool's own reports may be missing; nil
// = the state stays as it is. The error is for models and clients.
func (c *stateChange) event(state json.RawMessage) (agui.Event, error) {
	state = applyReports(state, c.reported)
	patch, changed, err := pipeline.Set(c.ops, state, agents.ResultScope(), c.variables)
	switch {
	case err != nil:
		return nil, err
	case patch == nil || bytes.Equal(state, changed):
		return nil, nil
	case len(changed) > tools.MaxState && len(changed) > len(state):
		return nil, fmt.Errorf("the state would have %d bytes, more than %d", len(changed), tools.MaxState)
	}
	return &agui.StateDelta{Delta: patch}, nil
}

// applyReports returns the state after the changes that a tool has reported. As readers do, it
// skips a change that does not apply.
func applyReports(state json.RawMessage, reported []json.RawMessage) json.RawMessage {
	for _, patch := range reported {
		if changed, err := agui.Patch(state, patch); err == nil {
			state = changed
		}
	}
	return state
}

// restorePredicted returns the event that restores the members of the state that the arguments of a
// call have changed in advance (state.predict); none if there are none.
func restorePredicted(snap *snapshot.Snapshot, call agui.ToolCall, reported []json.RawMessage) []agui.Event {
	delta := snap.RestorePredicted(call.ID, applyReports(snap.State, reported))
	if delta == nil {
		return nil
	}
	return []agui.Event{&agui.StateDelta{Delta: delta}}
}

// finishWithChange is finishCall for a call that changes the state. If another call changes the
// state concurrently, the change is computed again. A change that fails leaves the state as it is:
// the result of the call is kept, and clients and the worker's log are told. The model is told only
// if the change was the purpose of its call.
func (a *Activities) finishWithChange(
	ctx context.Context, in runs.ToolCall, call agui.ToolCall, attempt *stream.Attempt, end toolEnd, c *stateChange, snap *snapshot.Snapshot,
) (runs.ToolAnswer, error) {
	ctx, cancel := contextAfter(ctx)
	defer cancel()
	before := end.before
	for {
		end.before, end.onlyAfter = before, nil
		event, err := c.event(snap.State)
		switch {
		case err != nil && c.ofModel:
			end.before = append(slices.Clip(before), restorePredicted(snap, call, nil)...)
			end.result, end.answer.Outcome = tools.Failed("The state was not changed: "+err.Error()+"."), runs.OutcomeError
			return finishCall(ctx, in, call, attempt, end)
		case err != nil:
			logger(ctx).Warn("the result of a tool has not changed the state", "tool", call.Name, "toolCallId", call.ID, "reason", err.Error())
			if event, err = stateUnchanged(call, err); err != nil {
				return end.answer, err
			}
			end.before = append(slices.Clip(before), event)
		case event != nil:
			end.before, end.onlyAfter = append(slices.Clip(before), event), &snap.Mark
		}
		answer, err := finishCall(ctx, in, call, attempt, end)
		if !errors.Is(err, stream.ErrStale) {
			return answer, err
		}
		if snap, err = a.Snapshots.Latest(ctx, runOf(in.Run).Thread, snap.Seq); err != nil {
			return answer, err
		}
	}
}

// stateUnchanged returns the custom event for a change that has failed.
func stateUnchanged(call agui.ToolCall, reason error) (agui.Event, error) {
	value, err := json.Marshal(map[string]string{"toolCallId": call.ID, "tool": call.Name, "reason": reason.Error()})
	if err != nil {
		return nil, fmt.Errorf("activities: encode the reason: %w", err)
	}
	return &agui.Custom{Name: CustomStateUnchanged, Value: value}, nil
}
