package decisions

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// A tool may ask a question in the middle of its call. Callers that may decide in the thread answer
// it, with what the question's schema describes; no approval rule applies. The interrupts of a
// remote agent are questions too, and the agent may have a rule about who answers them. This file finds
// interrupts, and checks answers to questions.

// Interrupt is an interrupt of a thread's last run, with its call, as found in one snapshot. It is
// not updated: a concurrent decision may resolve it at any time.
type Interrupt struct {
	agui.Interrupt
	// Call is the zero value if the conversation does not have the call.
	Call agui.ToolCall
	Open bool // the thread has not continued with a decision
	// Thread is the snapshot in which the interrupt was found.
	Thread *snapshot.Snapshot
}

// ArgsDigest returns the digest of the call's arguments, by which a link is bound to them.
func (i *Interrupt) ArgsDigest() string { return runs.DigestArgs(i.Call.Arguments) }

// Find returns an open or recently resolved interrupt of a thread. Otherwise the error is
// UnknownApproval. It does not check whether the caller may decide.
func (s *Service) Find(ctx context.Context, thread stream.Thread, id string) (*Interrupt, error) {
	snap, err := s.finder.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return nil, err
	}
	interrupt := interruptByID(slices.Concat(snap.Interrupts, snap.Answered), id)
	if interrupt == nil {
		return nil, UnknownApproval(id)
	}
	result := &Interrupt{Interrupt: *interrupt, Open: interruptByID(snap.Interrupts, id) != nil, Thread: snap}
	for _, e := range snap.Entries {
		if i := slices.IndexFunc(e.Message.ToolCalls, func(c agui.ToolCall) bool { return c.ID == interrupt.ToolCallID }); i >= 0 {
			result.Call = e.Message.ToolCalls[i]
		}
	}
	return result, nil
}

// IsQuestion reports whether an interrupt is a tool's question. All others are approvals.
func IsQuestion(interrupt *agui.Interrupt) bool {
	_, isQuestion := interrupt.Metadata[stream.MetadataQuestion]
	return isQuestion
}

// checkKind returns a 422 if a decision does not fit the kind of its interrupt: a question takes
// answer, reject and cancel, with an answer that is valid by its schema; an approval takes an
// answer only as text, which replaces the call's result. pointer is the JSON pointer to the
// decision in the request.
func (s *Service) checkKind(interrupt *agui.Interrupt, req Request, pointer string) error {
	answers := req.Decision == string(runs.DecisionAnswer)
	switch {
	case !IsQuestion(interrupt) && answers:
		var text *string
		if err := json.Unmarshal(req.Content, &text); err != nil || text == nil {
			return InvalidAnswer(contentPointer(pointer), "must be a string: the result for the model")
		}
		return nil
	case !IsQuestion(interrupt), req.Decision == string(runs.DecisionReject), req.Decision == string(runs.DecisionCancel):
		return nil
	case !answers:
		return InvalidAnswer(pointer+"/decision", `must be "answer" or "reject", because the interrupt is a question`)
	case s.schemas == nil || len(interrupt.ResponseSchema) == 0:
		return nil
	}
	member, reason, err := s.schemas.Fits(interrupt.ResponseSchema, req.Content)
	if err != nil || reason == "" {
		return err
	}
	return InvalidAnswer(contentPointer(pointer)+member, reason)
}

// interruptByID returns the interrupt with an ID, of any kind; nil = none. It points into the
// slice.
func interruptByID(interrupts []agui.Interrupt, id string) *agui.Interrupt {
	i := slices.IndexFunc(interrupts, func(interrupt agui.Interrupt) bool { return interrupt.ID == id })
	if i < 0 {
		return nil
	}
	return &interrupts[i]
}

// hasMessage reports whether the conversation has a message with an ID.
func hasMessage(snap *snapshot.Snapshot, id string) bool {
	return slices.ContainsFunc(snap.Entries, func(e snapshot.Entry) bool { return e.Message.ID == id })
}
