package api

import (
	"encoding/json"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

// props are what a client may ask of us in forwardedProps.perdure, beside what the protocol has.
type props struct {
	History            stream.History   `json:"history"`
	OnBusy             workflows.OnBusy `json:"onBusy"`
	CancelOnDisconnect bool             `json:"cancelOnDisconnect"`
	Hold               bool             `json:"hold"`
	// ParentRunID is the input's, for clients that have no other place for it. ParentThreadID is the thread of
	// that run, where the input's is to be a fork.
	ParentRunID    string `json:"parentRunId"`
	ParentThreadID string `json:"parentThreadId"`
}

// propsOf reads and checks them. Any value is allowed in forwardedProps; only ours is looked at.
func propsOf(in *agui.RunAgentInput) (props, error) {
	var object map[string]json.RawMessage
	if len(in.ForwardedProps) > 0 {
		_ = json.Unmarshal(in.ForwardedProps, &object) // something else than an object has nothing of ours
	}
	var p props
	if ours := object["perdure"]; ours != nil {
		if err := json.Unmarshal(ours, &p); err != nil {
			return p, badRequest("invalid_input", "/forwardedProps/perdure", "must be an object whose members have the documented types")
		}
	}
	switch p.History {
	case stream.HistoryMerge, stream.HistoryAppend, stream.HistoryComplete:
	default:
		return p, badRequest("invalid_input", "/forwardedProps/perdure/history", `must be "append" or "complete"`)
	}
	switch p.OnBusy {
	case "", workflows.OnBusyReject, workflows.OnBusyEnqueue, workflows.OnBusyInterrupt, workflows.OnBusySteer:
	default:
		return p, badRequest("invalid_input", "/forwardedProps/perdure/onBusy", `must be "reject", "enqueue", "interrupt" or "steer"`)
	}
	if err := checkOptionalID("/forwardedProps/perdure/parentRunId", p.ParentRunID); err != nil {
		return p, err
	}
	if p.ParentRunID != "" && in.ParentRunID != "" && p.ParentRunID != in.ParentRunID {
		return p, badRequest("invalid_input", "/forwardedProps/perdure/parentRunId", "must not differ from parentRunId")
	}
	return p, checkOptionalID(parentThreadPointer, p.ParentThreadID)
}
