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
	"github.com/perdure/perdure/internal/auth/policy"
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
	if decodeErr, ok := errors.AsType[*agui.DecodeError](err); ok {
		return nil, errInvalidResult(decodeErr.Pointer, decodeErr.Detail)
	}
	if err != nil {
		return nil, err
	}
	if p, ok := errors.AsType[*problem.Problem](request.CheckID("/toolCallId", m.ToolCallID)); ok {
		return nil, errInvalidResult(p.Pointer, p.Detail)
	}
	return m, nil
}

// errInvalidResult returns the 422 for a result that is not a valid tool message.
func errInvalidResult(pointer, detail string) *problem.Problem {
	p := problem.New(http.StatusUnprocessableEntity, "invalid_tool_result", detail)
	p.Pointer = pointer
	return p
}

// ResultReceipt is the answer to a result: the thread has accepted it. In a problem it is the
// result that stands instead.
type ResultReceipt struct {
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
// waits for the result only after the model has finished. maxResultTries bounds how often
// SubmitResult tries again while the run is active; resultRetryInterval is the pause between two
// tries.
const (
	maxResultTries      = 20
	resultRetryInterval = 100 * time.Millisecond
)

// SubmitResult gives a result to the run that waits for it, and blocks until the thread's workflow
// has accepted it. channel is recorded for the audit. A result that arrives before the run waits
// for it is tried again for about two seconds.
//
// Errors: 404 unknown_tool_call, 409 answered with the result that stands, 410 abandoned, 422
// invalid_tool_result.
func (s *Service) SubmitResult(ctx context.Context, thread stream.Thread, r ToolResult, channel string) (ResultReceipt, error) {
	if err := s.access.Check(ctx, thread, policy.RunThread); err != nil {
		return ResultReceipt{}, err
	}
	result, err := r.message()
	if err != nil {
		return ResultReceipt{}, err
	}
	for try := 1; ; try++ {
		snap, err := s.finder.Snapshots.Latest(ctx, thread, 0)
		if err != nil {
			return ResultReceipt{}, err
		}
		receipt, err := s.tryResult(ctx, snap, stream.Run{Thread: thread, ID: snap.RunID}, result, channel)
		if err == nil && receipt.Cursor == "" {
			receipt.Cursor = s.finder.LatestCursor(snap)
		}
		isActive := snap.Run != "" && !snap.Sealed
		if try == maxResultTries || !isActive || !isUnknownCall(err) {
			return receipt, err
		}
		select {
		case <-time.After(resultRetryInterval):
		case <-ctx.Done():
			return ResultReceipt{}, err
		}
	}
}

// tryResult makes one attempt to deliver a result. It proposes the result to the log, and sends the
// workflow its digest and sequence. A 404 unknown_tool_call means that the run does not wait for
// the result, perhaps not yet.
func (s *Service) tryResult(ctx context.Context, snap *snapshot.Snapshot, run stream.Run, result *agui.Message, channel string) (ResultReceipt, error) {
	if callIndex(snap, result.ToolCallID) < 0 {
		return ResultReceipt{}, errUnknownCall(result.ToolCallID)
	}
	if receipt, found, err := findResult(snap, result); found {
		return receipt, err
	}
	content, digest := stream.ClientResult(result)
	content.By, content.Channel = request.Requester(ctx), channel
	proposal, err := s.finder.Log.ProposeResult(ctx, run, digest, content)
	if err != nil {
		return ResultReceipt{}, err
	}
	d := runs.Decision{CallID: result.ToolCallID, Kind: runs.DecisionToolResult, Digest: proposal.Digest, Proposal: proposal.Seq}
	var decided runs.DecideResult
	err = s.commands.Update(ctx, run.Thread, runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{d}}, &decided)
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Code == commands.CodeNotActive {
		return s.resultFromLog(ctx, run.Thread, result)
	}
	if err != nil {
		return ResultReceipt{}, err
	}
	switch decision := decided.Results[0]; {
	case decision.Error == runs.ErrorUnknownCall:
		return s.resultFromLog(ctx, run.Thread, result)
	case decision.Error == "":
		receipt := ResultReceipt{ToolCallID: result.ToolCallID, Repeated: decision.Recorded != nil}
		if decision.Resolved {
			receipt.Cursor = s.finder.EffectCursor(proposal.Seq)
		}
		return receipt, nil
	default:
		return s.conflictingResult(ctx, run.Thread, result, decision.Recorded.Proposal)
	}
}

// conflictingResult returns the problem that another result stands. proposal is the record of that
// result; 0 means that it arrived with an input, or that the call was abandoned, and the log tells
// which.
func (s *Service) conflictingResult(ctx context.Context, thread stream.Thread, result *agui.Message, proposal uint64) (ResultReceipt, error) {
	if proposal == 0 {
		return s.resultFromLog(ctx, thread, result)
	}
	content, err := s.finder.Log.Decision(ctx, proposal)
	if err != nil {
		return ResultReceipt{}, err
	}
	return ResultReceipt{}, errAnswered(content.Result)
}

// resultFromLog returns the outcome of a result from the log, because the thread's workflow does
// not wait for it. The result is a repetition if the conversation has the same one; another result
// is a
// 409. Without a result the call is either not waited for yet (404), or the thread has continued
// without it (410 abandoned).
func (s *Service) resultFromLog(ctx context.Context, thread stream.Thread, result *agui.Message) (ResultReceipt, error) {
	snap, err := s.finder.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return ResultReceipt{}, err
	}
	if receipt, found, err := findResult(snap, result); found {
		return receipt, err
	}
	needsDecision := slices.ContainsFunc(snap.Interrupts, func(q agui.Interrupt) bool { return q.ToolCallID == result.ToolCallID })
	// The call needs an approval, a worker makes it, or the run does not wait for it yet.
	if needsDecision || !snap.Sealed && callIndex(snap, result.ToolCallID) == lastCallsIndex(snap) {
		return ResultReceipt{}, errUnknownCall(result.ToolCallID)
	}
	return ResultReceipt{}, errAbandonedCall(result.ToolCallID)
}

// callIndex returns the index of the conversation's entry with a call; -1 = none.
func callIndex(snap *snapshot.Snapshot, id string) int {
	return slices.IndexFunc(snap.Entries, func(e snapshot.Entry) bool {
		return slices.ContainsFunc(e.Message.ToolCalls, func(c agui.ToolCall) bool { return c.ID == id })
	})
}

// lastCallsIndex returns the index of the last entry with tool calls of the run's own agent, not of
// a subagent; -1 = none.
func lastCallsIndex(snap *snapshot.Snapshot) int {
	last := -1
	for i, e := range snap.Entries {
		if len(e.Message.ToolCalls) > 0 && e.Message.SubagentRunID == "" {
			last = i
		}
	}
	return last
}

// resultEntry returns the entry with the result of a call; nil = none. It points into the snapshot,
// which is immutable.
func resultEntry(snap *snapshot.Snapshot, id string) *snapshot.Entry {
	i := slices.IndexFunc(snap.Entries, func(e snapshot.Entry) bool { return e.Message.Role == agui.RoleTool && e.Message.ToolCallID == id })
	if i < 0 {
		return nil
	}
	return &snap.Entries[i]
}

// findResult returns the outcome for a call that has a result in the conversation: a repetition
// if the digests are equal, else a 409. found is false if the call has no result.
func findResult(snap *snapshot.Snapshot, result *agui.Message) (receipt ResultReceipt, found bool, err error) {
	e := resultEntry(snap, result.ToolCallID)
	if e == nil {
		return ResultReceipt{}, false, nil
	}
	digest, recordedDigest := stream.ResultDigest(result), stream.ResultDigest(&e.Message)
	// The recorded digest is over what the client sent; the conversation's message may differ from
	// that.
	for _, d := range snap.Decided {
		if d.CallID == result.ToolCallID && d.Digest != "" {
			recordedDigest = d.Digest
		}
	}
	if digest != recordedDigest {
		return ResultReceipt{}, true, errAnswered(&e.Message)
	}
	return ResultReceipt{ToolCallID: result.ToolCallID, Repeated: true}, true, nil
}

// codeUnknownCall is the code of the problem that the thread does not wait for the result of a
// call. SubmitResult tries again if it gets this code from an active run.
const codeUnknownCall = "unknown_tool_call"

// isUnknownCall reports whether an error is that problem.
func isUnknownCall(err error) bool {
	p, ok := errors.AsType[*problem.Problem](err)
	return ok && p.Code == codeUnknownCall
}

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
	recorded := ResultReceipt{ToolCallID: m.ToolCallID, Content: m.Content.Text(), Error: m.Error}
	if !m.Content.IsText() {
		recorded.Content = m.Content.Parts()
	}
	if text, err := json.Marshal(recorded); err != nil || len(text) > inbox.MaxArgs { // too large: the conversation has it
		recorded = ResultReceipt{ToolCallID: m.ToolCallID, Truncated: true}
	}
	p.Recorded = recorded
	return p
}
