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

// The interrupt of a limit is about a call whose arguments are figures. An edit of it names another allowed value.

// aboutLimit completes such an edit: its arguments become all figures, with the allowed value that it names, so that the same value is the same decision however
// it is written. It returns other verdicts unchanged.
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

// namedFigure is the allowed value that an edit names. Clients may also send the other figures, unchanged.
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
