package api

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// The question whether a run may go beyond a limit is a call whose arguments are figures. An edit of it names another one:
// how far the run may go.

// aboutLimit reads such an edit. What is decided about are all the figures, with the one that it names: the same figure is
// the same decision, however it is written. Any other verdict it leaves as it is.
func (v verdict) aboutLimit(thread *snapshot.Snapshot, question *agui.Interrupt, at string) (verdict, error) {
	asked, err := stream.ApprovalSourceOf(*question)
	if asked == nil || err != nil || asked.Step != pipeline.LimitPath || v.Decision != string(runs.DecisionEdit) {
		return v, err
	}
	var shown pipeline.Figures
	arguments := askedCall(thread, question.ToolCallID).Arguments
	if err := json.Unmarshal([]byte(arguments), &shown); err != nil {
		return v, fmt.Errorf("api: question %s: figures: %w", question.ID, err)
	}
	said, err := namedFigure(arguments, v.Args, at)
	if err != nil {
		return v, err
	}
	shown, v.allowed, err = shown.Allow(said)
	if err != nil {
		return v, unfit(editPointer(at)+"/allowed", err.Error())
	}
	if v.Args, err = json.Marshal(shown); err != nil {
		return v, fmt.Errorf("api: encode figures: %w", err)
	}
	return v, nil
}

// namedFigure is how far a run may go. Clients may send the other figures along, as they are.
func namedFigure(arguments string, args json.RawMessage, at string) (json.RawMessage, error) {
	var was, edited map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &was); err != nil {
		return nil, fmt.Errorf("api: figures: %w", err)
	}
	if err := json.Unmarshal(args, &edited); err != nil {
		return nil, unfit(editPointer(at), "must be an object with allowed: how far the run may go")
	}
	for name, value := range edited {
		if name != "allowed" && !bytes.Equal(value, was[name]) {
			return nil, unfit(editPointer(at), "allowed is what can be changed, and nothing else")
		}
	}
	return edited["allowed"], nil
}
