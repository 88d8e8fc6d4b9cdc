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

// inputOptions are the members of forwardedProps.perdure, the options of one input beyond AG-UI.
// Every member is optional. optionsOf validates them, and no stage of startOrAttach changes them
// afterwards.
type inputOptions struct {
	// History tells how the input's messages relate to the thread's conversation: auto, append or
	// replace. "" = the agent's default, else auto.
	History snapshot.History `json:"history"`
	// Seen is the newest cursor of the thread that the client has; "" = unknown. It tells messages
	// that the client deleted from messages that it has not received yet.
	Seen string `json:"seen"`
	// OnBusy tells what happens if another run of the thread is active: reject, enqueue, interrupt
	// or steer. "" = reject.
	OnBusy runs.OnBusy `json:"onBusy"`
	// CancelOnDisconnect cancels the run when its client disconnects before the run ends (see
	// Server.cancelIfDisconnected).
	CancelOnDisconnect bool `json:"cancelOnDisconnect"`
	// Hold keeps the AG-UI run open while it waits for interrupts. Without it the run ends with the
	// outcome interrupt.
	Hold bool `json:"hold"`
	// ParentRunID is the parentRunId of the input, for clients that cannot set that member. It
	// counts only in the first input of a thread, which then begins as a fork of this run.
	ParentRunID string `json:"parentRunId"`
	// ParentThreadID is the thread of the parent run. "" = the API searches the tenant's threads
	// for the run, and refuses an ambiguous ID.
	ParentThreadID string `json:"parentThreadId"`
	// Metadata are names and values for the thread, which its description keeps (see
	// stream.Input.Description).
	Metadata map[string]string `json:"metadata"`
}

// optionsOf reads and validates forwardedProps.perdure. forwardedProps may be any JSON, because
// other servers and frameworks use it too; only its member perdure is checked, and strictly. A
// missing or null perdure gives the zero options. The error is a 400 whose pointer begins with
// /forwardedProps/perdure.
func optionsOf(in *agui.RunAgentInput) (inputOptions, error) {
	var object map[string]json.RawMessage
	if len(in.ForwardedProps) > 0 {
		_ = json.Unmarshal(in.ForwardedProps, &object) // a value that is not an object has no member perdure
	}
	var p inputOptions
	if member := object["perdure"]; member != nil && string(member) != "null" {
		if decodeErr, ok := errors.AsType[*problem.Problem](request.DecodeObject(member, &p)); ok {
			decodeErr.Pointer = "/forwardedProps/perdure" + decodeErr.Pointer
			return p, decodeErr
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
	if err := request.CheckMetadata("/forwardedProps/perdure/metadata", p.Metadata); err != nil {
		return p, err
	}
	return p, request.CheckOptionalID(parentThreadPointer, p.ParentThreadID)
}

// seenSequence returns the sequence of the cursor in perdure.seen: the last record that the client
// was shown. It returns 0, unknown, without a cursor, and for a cursor of another log, whose
// sequences mean nothing here. Any other invalid cursor is a 400.
func (s *Server) seenSequence(cursor string) (uint64, error) {
	if cursor == "" {
		return 0, nil
	}
	position, err := s.Log.ParseCursor(cursor)
	switch {
	case errors.Is(err, stream.ErrLogReplaced):
		return 0, nil
	case err != nil:
		return 0, problem.BadRequest("invalid_input", "/forwardedProps/perdure/seen", "must be a cursor of the thread, the id of an event")
	}
	return position.Seq, nil
}

// digestInput returns the digest of an input, by which Server.findRun recognizes a repeated input.
// It leaves out perdure.seen, because a client that repeats an input may have received more events
// meanwhile. Every other member counts.
func digestInput(input *agui.RunAgentInput) [32]byte {
	inputCopy := *input
	inputCopy.ForwardedProps = withoutSeen(input.ForwardedProps)
	return inputCopy.Digest()
}

// withoutSeen returns forwarded properties without perdure.seen, and without perdure if that has no
// other member. It returns the same bytes if there is no perdure.seen, or if the value is not an
// object: then the digest is over what the client wrote.
func withoutSeen(forwarded json.RawMessage) json.RawMessage {
	var props, perdure map[string]json.RawMessage
	if json.Unmarshal(forwarded, &props) != nil || json.Unmarshal(props["perdure"], &perdure) != nil || perdure["seen"] == nil {
		return forwarded
	}
	delete(perdure, "seen")
	delete(props, "perdure")
	if len(perdure) > 0 {
		text, err := json.Marshal(perdure)
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
