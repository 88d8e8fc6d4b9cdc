package sockets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// clientFrame is a frame of a client, with the members of all types (see membersOf). ID is chosen
// by the client, and is in every answer.
type clientFrame struct {
	Type     string  `json:"type"`
	ID       string  `json:"id"`
	ThreadID string  `json:"threadId"`
	RunID    *string `json:"runId"`
	// Of run.
	Agent string          `json:"agent"`
	Input json.RawMessage `json:"input"`
	// Of subscribe.
	After           string  `json:"after"`
	Join            bool    `json:"join"`
	Follow          *bool   `json:"follow"` // of a thread; none = true
	ProtocolVersion *string `json:"protocolVersion"`
	// Of run and subscribe: the cursor of an acknowledgement (see lookup.Finder.AwaitEffect).
	WaitFor string `json:"waitFor"`
	// Of cancel.
	Reason string `json:"reason"`
	// Of steer.
	Message json.RawMessage `json:"message"`
	// Of decide, beside reason and content.
	ApprovalID string             `json:"approvalId"`
	Decision   string             `json:"decision"`
	Args       json.RawMessage    `json:"args"`
	Remember   decisions.Remember `json:"remember"`
	// Of tool_result.
	ToolCallID json.RawMessage `json:"toolCallId"`
	Content    json.RawMessage `json:"content"`
	Error      json.RawMessage `json:"error"`

	// result is the result in the ack.
	result any
}

// decodeRequest decodes a frame. It returns what it could read of an invalid one as well, so that
// the refusal has its ID.
func decodeRequest(frame []byte) (*clientFrame, error) {
	r := new(clientFrame)
	err := json.Unmarshal(frame, r)
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mistyped) && mistyped.Field == "":
		return r, invalidFrame("", "must be a JSON object")
	case errors.As(err, &mistyped):
		kind, _, _ := strings.Cut(mistyped.Value, " ") // of a number it has all the digits
		return r, invalidFrame("/"+strings.ReplaceAll(mistyped.Field, ".", "/"), "has the wrong type: "+kind)
	case err != nil:
		return r, invalidFrame("", "must be JSON: "+err.Error())
	case len(r.ID) > stream.MaxIDBytes:
		r.ID = ""
		return r, invalidFrame("/id", "may have at most 1000 bytes")
	case r.ID == "":
		return r, invalidFrame("/id", "must be a string that is not empty")
	}
	if p, ok := errors.AsType[*problem.Problem](request.DecodeObject(frame, new(clientFrame))); ok { // only an unknown member is left to find
		return r, invalidFrame(p.Pointer, p.Detail)
	}
	return r, r.checkMembers(frame)
}

// membersOf are the members of each type of frame, besides type and id.
var membersOf = map[string][]string{
	"ping":        {},
	"unsubscribe": {},
	"run":         {"agent", "input", "waitFor"},
	"subscribe":   {"threadId", "runId", "after", "join", "follow", "protocolVersion", "waitFor"},
	"cancel":      {"threadId", "runId", "reason"},
	"steer":       {"threadId", "message"},
	"decide":      {"threadId", "approvalId", "decision", "args", "content", "reason", "remember"},
	"tool_result": {"threadId", "toolCallId", "content", "error"},
}

// checkMembers refuses a member that belongs to frames of other types. An unknown type is refused
// where it is dispatched.
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
			return invalidFrame("/"+name, fmt.Sprintf("is no member of a frame %s, which may have %s", r.Type, strings.Join(append([]string{"type", "id"}, known...), ", ")))
		}
	}
	return nil
}

func invalidFrame(pointer, detail string) *problem.Problem {
	return problem.BadRequest("invalid_frame", pointer, detail)
}

// thread returns the thread of the frame, of the caller's tenant.
func (r *clientFrame) thread(ctx context.Context) (stream.Thread, error) {
	thread, err := request.ThreadIn(ctx, r.ThreadID)
	if err != nil {
		return thread, err
	}
	return thread, request.CheckID("/threadId", r.ThreadID)
}

// run returns the run of the frame.
func (r *clientFrame) run(ctx context.Context) (stream.Run, error) {
	thread, err := request.ThreadIn(ctx, r.ThreadID)
	if err != nil {
		return stream.Run{}, err
	}
	run := stream.Run{Thread: thread}
	if r.RunID != nil {
		run.ID = *r.RunID
	}
	return run, request.CheckRun(run)
}

// follows reports whether a thread is followed after its active run.
func (r *clientFrame) follows() bool { return r.Follow == nil || *r.Follow }

// acknowledgement tells that a request was taken, and is durable if it changes something.
type acknowledgement struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	Request  string `json:"request"`
	ThreadID string `json:"threadId,omitempty"`
	RunID    string `json:"runId,omitempty"`
	Cursor   string `json:"cursor,omitempty"` // of a steer
	Result   any    `json:"result,omitempty"` // of a decide and a tool_result
}

func ack(r *clientFrame, run stream.Run) acknowledgement {
	return acknowledgement{Type: "ack", ID: r.ID, Request: r.Type, ThreadID: run.Thread.ID, RunID: run.Shown(), Result: r.result}
}

// ending tells that the stream of a request is complete.
type ending struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

func end(r *clientFrame) ending { return ending{Type: "end", ID: r.ID} }

// refusal is a problem as a frame.
type refusal struct {
	Type       string `json:"type"`
	ID         string `json:"id,omitempty"`
	Status     int    `json:"status"`
	Code       string `json:"code"`
	Detail     string `json:"detail,omitempty"`
	Pointer    string `json:"pointer,omitempty"`
	ActiveRun  string `json:"activeRun,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"`
	// PendingToolCallIDs and Recorded are those of the problem.
	PendingToolCallIDs []string `json:"pendingToolCallIds,omitempty"`
	Recorded           any      `json:"recorded,omitempty"`
}

func refuse(r *clientFrame, p *problem.Problem) refusal {
	return refusal{
		Type: "error", ID: r.ID, Status: p.Status, Code: p.Code, Detail: p.Detail, Pointer: p.Pointer,
		ActiveRun: p.ActiveRun, RetryAfter: p.RetryAfter, PendingToolCallIDs: p.PendingToolCallIDs, Recorded: p.Recorded,
	}
}

// envelope puts events into frames. The event is sent byte for byte, as over SSE.
type envelope struct{ head, middle []byte }

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

// wrap appends the frame of an event. A cursor needs no escapes; there is none inside a prelude.
func (e envelope) wrap(to []byte, f view.Frame) []byte {
	to = append(to, e.head...)
	if cursor := f.Cursor.String(); cursor != "" {
		to = append(to, `,"cursor":"`...)
		to = append(to, cursor...)
		to = append(to, '"')
	}
	to = append(to, e.middle...)
	to = append(to, f.Event...)
	return append(to, '}')
}
