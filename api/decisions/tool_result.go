package decisions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// ToolResult is the result of a client tool call that does not arrive with an input. The members
// are raw, because message validates them as those of an AG-UI tool message.
type ToolResult struct {
	ToolCallID json.RawMessage `json:"toolCallId"`
	Content    json.RawMessage `json:"content"`
	Error      json.RawMessage `json:"error,omitempty"`
}

// message validates a result and converts it to a tool message. An invalid result is a 422
// invalid_tool_result with a pointer.
func (r ToolResult) message() (*agui.Message, error) {
	m, err := agui.DecodeToolResult(r.ToolCallID, r.Content, r.Error)
	pointer, detail := "", ""
	if wrong, ok := errors.AsType[*agui.DecodeError](err); ok {
		pointer, detail = wrong.Pointer, wrong.Detail
	} else if err != nil {
		return nil, err
	} else if p, ok := errors.AsType[*problem.Problem](request.CheckID("/toolCallId", m.ToolCallID)); ok {
		pointer, detail = p.Pointer, p.Detail
	}
	if detail == "" {
		return m, nil
	}
	p := problem.New(http.StatusUnprocessableEntity, "invalid_tool_result", detail)
	p.Pointer = pointer
	return nil, p
}

// AcceptedResult is the answer to a result: the thread has accepted it. In a problem it is the
// result that stands instead.
type AcceptedResult struct {
	ToolCallID string `json:"toolCallId"`
	Content    any    `json:"content,omitempty"` // of the standing result: a string, or a list of parts
	Error      string `json:"error,omitempty"`
	// Truncated tells that content and error of the standing result are left out, because they are
	// too large. Repeated tells that the same result was recorded before.
	Truncated bool `json:"truncated,omitempty"`
	Repeated  bool `json:"repeated,omitempty"`
	// Cursor is for waitFor: a reader that sends it sees the effect of the result.
	Cursor string `json:"cursor,omitempty"`
}

// A client may be faster than its run: it knows a call from the call's first event, while the run
// waits for the result only after the model has finished. resultTries bounds how often TakeResult
// tries again while the run is active; betweenTries is the pause between two tries.
const (
	resultTries  = 20
	betweenTries = 100 * time.Millisecond
)

// TakeResult gives a result to the run that waits for it, and blocks until the thread's workflow
// has accepted it. channel is recorded for the audit. A result that arrives before the run waits
// for it is tried again for about two seconds.
//
// Errors: 404 unknown_tool_call, 409 answered with the result that stands, 410 abandoned, 422
// invalid_tool_result.
func (s *Service) TakeResult(ctx context.Context, thread stream.Thread, r ToolResult, channel string) (AcceptedResult, error) {
	m, err := r.message()
	if err != nil {
		return AcceptedResult{}, err
	}
	for try := 1; ; try++ {
		snap, err := s.find.Snapshots.Latest(ctx, thread, 0)
		if err != nil {
			return AcceptedResult{}, err
		}
		answer, err := s.tryResult(ctx, snap, stream.Run{Thread: thread, ID: snap.RunID}, m, channel)
		if err == nil && answer.Cursor == "" {
			answer.Cursor = s.find.EffectCursor(snap, 0, false)
		}
		p, ok := errors.AsType[*problem.Problem](err)
		if !ok || p.Code != codeUnknownCall || snap.Sealed || snap.Run == "" || try == resultTries {
			return answer, err
		}
		select {
		case <-time.After(betweenTries):
		case <-ctx.Done():
			return AcceptedResult{}, err
		}
	}
}

// tryResult makes one attempt to deliver a result. It proposes the result to the log, and sends the
// workflow its digest and sequence. A 404 unknown_tool_call means that the run does not wait for
// the result, perhaps not yet.
func (s *Service) tryResult(ctx context.Context, snap *snapshot.Snapshot, run stream.Run, m *agui.Message, channel string) (AcceptedResult, error) {
	if callOf(snap, m.ToolCallID) < 0 {
		return AcceptedResult{}, errUnknownCall(m.ToolCallID)
	}
	if answer, known, err := answeredBefore(snap, m); known {
		return answer, err
	}
	content, digest := stream.ClientResult(m)
	content.By, content.Channel = request.Requester(ctx), channel
	p, err := s.find.Log.ProposeResult(ctx, run, digest, content)
	if err != nil {
		return AcceptedResult{}, err
	}
	d := runs.Decision{CallID: m.ToolCallID, Kind: runs.DecisionToolResult, Digest: p.Digest, Input: p.Seq}
	var taken runs.DecideResult
	err = s.commands.Update(ctx, run.Thread, runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{d}}, &taken)
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Code == commands.CodeNotActive {
		return s.resultMissed(ctx, run.Thread, m)
	}
	if err != nil {
		return AcceptedResult{}, err
	}
	switch r := taken.Results[0]; {
	case r.Error == runs.ErrorUnknownCall:
		return s.resultMissed(ctx, run.Thread, m)
	case r.Error == "":
		answer := AcceptedResult{ToolCallID: m.ToolCallID, Repeated: r.Recorded != nil}
		if r.Settled {
			answer.Cursor = s.find.EffectCursor(snap, p.Seq, true)
		}
		return answer, nil
	default:
		return s.resultStands(ctx, run.Thread, m, r.Recorded.Input)
	}
}

// resultStands returns the problem that another result stands. proposal is the record of that
// result; 0 means that it arrived with an input, or that the call was abandoned, and the log tells
// which.
func (s *Service) resultStands(ctx context.Context, thread stream.Thread, m *agui.Message, proposal uint64) (AcceptedResult, error) {
	if proposal == 0 {
		return s.resultMissed(ctx, thread, m)
	}
	content, err := s.find.Log.Decision(ctx, proposal)
	if err != nil {
		return AcceptedResult{}, err
	}
	return AcceptedResult{}, errAnswered(content.Result)
}

// resultMissed returns the outcome of a result from the log, because the thread's workflow does not
// wait for it. The result is a repetition if the conversation has the same one; another result is a
// 409. Without a result the call is either not waited for yet (404), or the thread has continued
// without it (410 abandoned).
func (s *Service) resultMissed(ctx context.Context, thread stream.Thread, m *agui.Message) (AcceptedResult, error) {
	snap, err := s.find.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return AcceptedResult{}, err
	}
	if answer, known, err := answeredBefore(snap, m); known {
		return answer, err
	}
	requested := slices.ContainsFunc(snap.Interrupts, func(q agui.Interrupt) bool { return q.ToolCallID == m.ToolCallID })
	// The call needs an approval, a worker makes it, or the run does not wait for it yet.
	if requested || !snap.Sealed && callOf(snap, m.ToolCallID) == lastCalls(snap) {
		return AcceptedResult{}, errUnknownCall(m.ToolCallID)
	}
	return AcceptedResult{}, errAbandonedCall(m.ToolCallID)
}

// callOf returns the index of the conversation's entry with a call; -1 = none.
func callOf(snap *snapshot.Snapshot, id string) int {
	return slices.IndexFunc(snap.Entries, func(e snapshot.Entry) bool {
		return slices.ContainsFunc(e.Message.ToolCalls, func(c agui.ToolCall) bool { return c.ID == id })
	})
}

// lastCalls returns the index of the last entry with tool calls of the run's own agent, not of a
// subagent; -1 = none.
func lastCalls(snap *snapshot.Snapshot) int {
	last := -1
	for i, e := range snap.Entries {
		if len(e.Message.ToolCalls) > 0 && e.Message.SubagentRunID == "" {
			last = i
		}
	}
	return last
}

// resultOf returns the entry with the result of a call; nil = none. It points into the snapshot,
// which is immutable.
func resultOf(snap *snapshot.Snapshot, id string) *snapshot.Entry {
	i := slices.IndexFunc(snap.Entries, func(e snapshot.Entry) bool { return e.Message.Role == agui.RoleTool && e.Message.ToolCallID == id })
	if i < 0 {
		return nil
	}
	return &snap.Entries[i]
}

// answeredBefore returns the outcome for a call that has a result in the conversation: a repetition
// if the digests are equal, else a 409. known is false if the call has no result.
func answeredBefore(snap *snapshot.Snapshot, m *agui.Message) (answer AcceptedResult, known bool, err error) {
	e := resultOf(snap, m.ToolCallID)
	if e == nil {
		return AcceptedResult{}, false, nil
	}
	digest, mine := stream.ResultDigest(m), stream.ResultDigest(&e.Message)
	// The recorded digest is over what the client sent; the conversation's message may differ from
	// that.
	for _, d := range snap.Decided {
		if d.CallID == m.ToolCallID && d.Digest != "" {
			mine = d.Digest
		}
	}
	if digest != mine {
		return AcceptedResult{}, true, errAnswered(&e.Message)
	}
	return AcceptedResult{ToolCallID: m.ToolCallID, Repeated: true}, true, nil
}

// codeUnknownCall is the code of the problem that the thread does not wait for the result of a
// call. TakeResult tries again if it gets this code from an active run.
const codeUnknownCall = "unknown_tool_call"

// errUnknownCall returns that problem, a 404.
func errUnknownCall(id string) *problem.Problem {
	return problem.New(http.StatusNotFound, codeUnknownCall, fmt.Sprintf("the thread does not wait for a result of the tool call %.200q", id))
}

// errAbandonedCall returns the 410 for a call without a result with which the thread has continued.
func errAbandonedCall(id string) *problem.Problem {
	return problem.New(http.StatusGone, "abandoned", fmt.Sprintf("the thread has continued without the result of the tool call %.200q", id))
}

// errAnswered returns the 409 for a call that has another result, which it contains unless it is
// too large.
func errAnswered(m *agui.Message) *problem.Problem {
	p := problem.New(http.StatusConflict, "answered", fmt.Sprintf("the tool call %.200q already has another result", m.ToolCallID))
	recorded := AcceptedResult{ToolCallID: m.ToolCallID, Content: m.Content.Text(), Error: m.Error}
	if !m.Content.IsText() {
		recorded.Content = m.Content.Parts()
	}
	if text, err := json.Marshal(recorded); err != nil || len(text) > inbox.MaxArgs { // too large: the conversation has it
		recorded = AcceptedResult{ToolCallID: m.ToolCallID, Truncated: true}
	}
	p.Recorded = recorded
	return p
}
