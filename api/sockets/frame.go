package sockets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// clientFrame is a frame of a client. The struct has the members of all types of frames; membersOf
// lists those of each type, and checkMembers refuses the others. The client chooses ID, and every
// answer has it.
type clientFrame struct {
	Type     string  `json:"type"`
	ID       string  `json:"id"`
	ThreadID string  `json:"threadId"`
	RunID    *string `json:"runId"`
	// Of run.
	Agent    string          `json:"agent"`
	Revision string          `json:"revision"` // "" = the current one
	Input    json.RawMessage `json:"input"`
	subscribeMembers
	// Of run and subscribe: the cursor of an acknowledgement (see lookup.Finder.AwaitEffect).
	WaitFor string `json:"waitFor"`
	// Of cancel.
	Reason string `json:"reason"`
	// Of steer.
	Message json.RawMessage `json:"message"`
	decideMembers
	// Of tool_result.
	ToolCallID json.RawMessage `json:"toolCallId"`
	Content    json.RawMessage `json:"content"`
	Error      json.RawMessage `json:"error"`

	// result is set by the handler, and becomes the member result of the ack.
	result any
	// held is the memory of the message; nil = it is not counted.
	held *quota.Portion
}

// release releases the memory of the frame's input.
func (r *clientFrame) release() {
	r.Input = nil
	if r.held != nil {
		r.held.Release()
	}
}

// subscribeMembers are the members of subscribe.
type subscribeMembers struct {
	After           string  `json:"after"`
	Join            bool    `json:"join"`
	Follow          *bool   `json:"follow"` // of a thread; none = true
	ProtocolVersion *string `json:"protocolVersion"`
	Timestamps      bool    `json:"timestamps"`
}

// decideMembers are the members of decide, together with reason and content.
type decideMembers struct {
	ApprovalID string             `json:"approvalId"`
	Decision   string             `json:"decision"`
	Args       json.RawMessage    `json:"args"`
	Remember   decisions.Remember `json:"remember"`
}

// decodeFrame decodes and validates a frame. It returns a frame in any case: that of an invalid
// one has what could be read, so that the refusal can have its ID. Errors are 400 invalid_frame.
func decodeFrame(frame []byte) (*clientFrame, error) {
	r := new(clientFrame)
	if err := agui.CheckValues(frame); err != nil {
		var named struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(frame, &named) == nil && len(named.ID) <= stream.MaxIDBytes {
			r.ID = named.ID
		}
		p := problem.Of(err)
		return r, invalidFrame(p.Pointer, p.Detail)
	}
	err := json.Unmarshal(frame, r)
	var typeErr *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typeErr) && typeErr.Field == "":
		return r, invalidFrame("", "must be a JSON object")
	case errors.As(err, &typeErr):
		kind, _, _ := strings.Cut(typeErr.Value, " ") // Value of a number contains its digits
		return r, invalidFrame("/"+strings.ReplaceAll(typeErr.Field, ".", "/"), "has the wrong type: "+kind)
	case err != nil:
		return r, invalidFrame("", "must be JSON: "+err.Error())
	case len(r.ID) > stream.MaxIDBytes:
		r.ID = ""
		return r, invalidFrame("/id", "may have at most 1000 bytes")
	case r.ID == "":
		return r, invalidFrame("/id", "must be a string that is not empty")
	}
	if p, ok := errors.AsType[*problem.Problem](request.DecodeObject(frame, new(clientFrame))); ok { // syntax and types are valid by now; only an unknown member is left
		return r, invalidFrame(p.Pointer, p.Detail)
	}
	return r, r.checkMembers(frame)
}

// membersOf are the members of each type of frame, in addition to type and id.
var membersOf = map[string][]string{
	"ping":        {},
	"unsubscribe": {},
	"run":         {"agent", "revision", "input", "waitFor"},
	"subscribe":   {"threadId", "runId", "after", "join", "follow", "timestamps", "protocolVersion", "waitFor"},
	"cancel":      {"threadId", "runId", "reason"},
	"steer":       {"threadId", "message"},
	"decide":      {"threadId", "approvalId", "decision", "args", "content", "reason", "remember"},
	"tool_result": {"threadId", "toolCallId", "content", "error"},
}

// auditAction returns the frame's action in the audit log.
func (r *clientFrame) auditAction() audit.Action {
	switch r.Type {
	case "run":
		return audit.StartRun
	case "cancel":
		return audit.CancelRun
	case "steer":
		return audit.SteerThread
	case "decide":
		return audit.DecideInterrupt
	case "tool_result":
		return audit.SendToolResult
	}
	return audit.Read
}

// checkMembers refuses a member that belongs to frames of other types, and thus a client that
// expects an effect which the frame does not have. null counts as missing. An unknown type is
// refused later, by session.handle.
func (r *clientFrame) checkMembers(frame []byte) error {
	known, ok := membersOf[r.Type]
	if !ok {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(frame, &members); err != nil {
		return invalidFrame("", "must be a JSON object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name != "type" && name != "id" && string(members[name]) != "null" && !slices.Contains(known, name) {
			return invalidFrame("/"+name, fmt.Sprintf("is not a member of a frame %s, which may have %s", r.Type, strings.Join(append([]string{"type", "id"}, known...), ", ")))
		}
	}
	return nil
}

// invalidFrame returns the 400 for a frame that is not valid by itself. Many in a row close the
// WebSocket (maxFaults).
func invalidFrame(pointer, detail string) *problem.Problem {
	return problem.BadRequest("invalid_frame", pointer, detail)
}

// run returns the run of the frame, in the caller's tenant. A missing or invalid ID is an error. The
// caller of run checks the access.
func (r *clientFrame) run(ctx context.Context) (stream.Run, error) {
	id := ""
	if r.RunID != nil {
		id = *r.RunID
	}
	return access.AddressRun(ctx, r.ThreadID, id)
}

// writes reports whether the frame may start a run or write to the log.
func (r *clientFrame) writes() bool {
	switch r.Type {
	case "run", "cancel", "steer", "decide", "tool_result":
		return true
	}
	return false
}

// followsLaterRuns reports whether the stream of a thread continues after the active run, which is
// the default.
func (r *clientFrame) followsLaterRuns() bool { return r.Follow == nil || *r.Follow }

// acknowledgement is the ack frame: the server has accepted the request. If the request changes
// something, the change is durable. Request is the type of the request's frame.
type acknowledgement struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	Request  string `json:"request"`
	ThreadID string `json:"threadId,omitempty"`
	RunID    string `json:"runId,omitempty"`
	Cursor   string `json:"cursor,omitempty"` // of a steer
	Result   any    `json:"result,omitempty"` // of a decide and a tool_result
}

// acknowledge returns the acknowledgement of a frame. run is the run that it is about; zero = none.
func acknowledge(r *clientFrame, run stream.Run) acknowledgement {
	return acknowledgement{Type: "ack", ID: r.ID, Request: r.Type, ThreadID: run.Thread.ID, RunID: run.Shown(), Result: r.result}
}

// streamEnd is the end frame: all events of the request's stream were sent.
type streamEnd struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// streamEndOf returns the end frame for a request.
func streamEndOf(r *clientFrame) streamEnd { return streamEnd{Type: "end", ID: r.ID} }

// refusal is the error frame: a problem, with the ID of the request. The WebSocket stays open.
type refusal struct {
	Type       string `json:"type"`
	ID         string `json:"id,omitempty"`
	Status     int    `json:"status"`
	Code       string `json:"code"`
	Detail     string `json:"detail,omitempty"`
	Pointer    string `json:"pointer,omitempty"`
	ActiveRun  string `json:"activeRun,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"`
	// PendingToolCallIDs, Recorded and Counted are those of the problem.
	PendingToolCallIDs []string `json:"pendingToolCallIds,omitempty"`
	Recorded           any      `json:"recorded,omitempty"`
	Counted            bool     `json:"counted,omitempty"`
	// Rule, Quota, Limit and Used are those of the problem.
	Rule  string `json:"rule,omitempty"`
	Quota string `json:"quota,omitempty"`
	Limit int64  `json:"limit,omitempty"`
	Used  int64  `json:"used,omitempty"`
}

// refusalOf returns the error frame for a request.
func refusalOf(r *clientFrame, p *problem.Problem) refusal {
	return refusal{
		Type: "error", ID: r.ID, Status: p.Status, Code: p.Code, Detail: p.Detail, Pointer: p.Pointer,
		ActiveRun: p.ActiveRun, RetryAfter: p.RetryAfter, PendingToolCallIDs: p.PendingToolCallIDs, Recorded: p.Recorded,
		Counted: p.Counted, Rule: p.Rule, Quota: p.Quota, Limit: p.Limit, Used: p.Used,
	}
}

// envelope wraps the events of one run into event frames. The constant parts are encoded once,
// because a token of a model is a frame. The event is copied byte for byte, so it equals that of
// SSE.
type envelope struct{ head, middle []byte }

// newEnvelope returns the envelope for a run's events. frame is the ID of the request.
func newEnvelope(frame string, run stream.Run) (envelope, error) {
	id, err := json.Marshal(frame)
	if err != nil {
		return envelope{}, err
	}
	thread, err := json.Marshal(run.Thread.ID)
	if err != nil {
		return envelope{}, err
	}
	runID, err := json.Marshal(run.Shown())
	if err != nil {
		return envelope{}, err
	}
	return envelope{
		head:   []byte(`{"type":"event","id":` + string(id)),
		middle: []byte(`,"threadId":` + string(thread) + `,"runId":` + string(runID) + `,"event":`),
	}, nil
}

// appendFrame appends the event frame of f to a buffer, and returns the buffer. A cursor needs no
// escaping; inside a prelude there is none.
func (e envelope) appendFrame(b []byte, f view.Frame) []byte {
	b = append(b, e.head...)
	if cursor := f.Cursor.String(); cursor != "" {
		b = append(b, `,"cursor":"`...)
		b = append(b, cursor...)
		b = append(b, '"')
	}
	b = append(b, e.middle...)
	b = append(b, f.Event...)
	return append(b, '}')
}
