package api

import (
	"encoding/json"
	"errors"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// props are the members of forwardedProps.perdure: what a client may request beyond the protocol.
type props struct {
	// History is how the input's messages relate to the thread's; "" = as the agent's definition
	// says.
	History snapshot.History `json:"history"`
	// Seen is the newest cursor of the thread that the client has; "" = unknown.
	Seen               string      `json:"seen"`
	OnBusy             runs.OnBusy `json:"onBusy"`
	CancelOnDisconnect bool        `json:"cancelOnDisconnect"`
	Hold               bool        `json:"hold"`
	// ParentRunID is the input's member, for clients that cannot set that. ParentThreadID is the
	// thread of that run, if the input's thread is to be a fork.
	ParentRunID    string `json:"parentRunId"`
	ParentThreadID string `json:"parentThreadId"`
}

// propsOf reads and checks them. forwardedProps may be any value; only the member perdure is
// checked.
func propsOf(in *agui.RunAgentInput) (props, error) {
	var object map[string]json.RawMessage
	if len(in.ForwardedProps) > 0 {
		_ = json.Unmarshal(in.ForwardedProps, &object) // a value that is no object has no perdure
	}
	var p props
	if ours := object["perdure"]; ours != nil && string(ours) != "null" {
		if wrong, ok := errors.AsType[*problem.Problem](request.DecodeObject(ours, &p)); ok {
			wrong.Pointer = "/forwardedProps/perdure" + wrong.Pointer
			return p, wrong
		}
	}
	switch p.History {
	case "", snapshot.HistoryAuto, snapshot.HistoryAppend, snapshot.HistoryReplace:
	default:
		return p, problem.BadRequest("invalid_input", "/forwardedProps/perdure/history", `must be "auto", "append" or "replace"`)
	}
	switch p.OnBusy {
	case "", runs.OnBusyReject, runs.OnBusyEnqueue, runs.OnBusyInterrupt, runs.OnBusySteer:
	default:
		return p, problem.BadRequest("invalid_input", "/forwardedProps/perdure/onBusy", `must be "reject", "enqueue", "interrupt" or "steer"`)
	}
	if err := request.CheckOptionalID("/forwardedProps/perdure/parentRunId", p.ParentRunID); err != nil {
		return p, err
	}
	if p.ParentRunID != "" && in.ParentRunID != "" && p.ParentRunID != in.ParentRunID {
		return p, problem.BadRequest("invalid_input", "/forwardedProps/perdure/parentRunId", "must not differ from parentRunId")
	}
	return p, request.CheckOptionalID(parentThreadPointer, p.ParentThreadID)
}

// seenSequence returns the sequence of the last record that a client was shown, by its newest
// cursor; 0 = unknown, also for a cursor of another log.
func (s *Server) seenSequence(cursor string) (uint64, error) {
	if cursor == "" {
		return 0, nil
	}
	at, err := s.Log.ParseCursor(cursor)
	switch {
	case errors.Is(err, stream.ErrLogReplaced):
		return 0, nil
	case err != nil:
		return 0, problem.BadRequest("invalid_input", "/forwardedProps/perdure/seen", "must be a cursor of the thread: the id of an event")
	}
	return at.Seq, nil
}

// digestInput identifies the content of an input. It leaves out what the client has seen: when the
// client repeats the input it may have seen more.
func digestInput(input *agui.RunAgentInput) [32]byte {
	plain := *input
	plain.ForwardedProps = withoutSeen(input.ForwardedProps)
	return plain.Digest()
}

// withoutSeen removes perdure.seen from forwarded properties, and perdure itself if it has no other
// member.
func withoutSeen(forwarded json.RawMessage) json.RawMessage {
	var props, ours map[string]json.RawMessage
	if json.Unmarshal(forwarded, &props) != nil || json.Unmarshal(props["perdure"], &ours) != nil || ours["seen"] == nil {
		return forwarded
	}
	delete(ours, "seen")
	delete(props, "perdure")
	if len(ours) > 0 {
		text, err := json.Marshal(ours)
		if err != nil {
			return forwarded
		}
		props["perdure"] = text
	}
	text, err := json.Marshal(props)
	if err != nil {
		return forwarded
	}
	return text
}
