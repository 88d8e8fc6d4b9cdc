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

// A tool may ask something in the middle of its call. Everybody who may use the thread may answer,
// with what the tool's schema describes.

// Interrupt is an interrupt of a thread's last run, and its call.
type Interrupt struct {
	agui.Interrupt
	Call agui.ToolCall
	Open bool // the thread has not continued
	// Thread is the snapshot in which it was found.
	Thread *snapshot.Snapshot
}

// ArgsDigest returns the digest of the arguments of the call.
func (q *Interrupt) ArgsDigest() string { return runs.DigestArgs(q.Call.Arguments) }

// Find returns an interrupt of the last run of a thread.
func (s *Service) Find(ctx context.Context, thread stream.Thread, id string) (*Interrupt, error) {
	now, err := s.find.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return nil, err
	}
	found := questionOf(slices.Concat(now.Interrupts, now.Answered), id)
	if found == nil {
		return nil, NoApproval(id)
	}
	q := &Interrupt{Interrupt: *found, Open: questionOf(now.Interrupts, id) != nil, Thread: now}
	for _, e := range now.Entries {
		if i := slices.IndexFunc(e.Message.ToolCalls, func(c agui.ToolCall) bool { return c.ID == found.ToolCallID }); i >= 0 {
			q.Call = e.Message.ToolCalls[i]
		}
	}
	return q, nil
}

// IsQuestion reports whether an interrupt is a question of a tool. Others are approvals.
func IsQuestion(question *agui.Interrupt) bool {
	_, raised := question.Metadata[stream.MetadataQuestion]
	return raised
}

// suits refuses an invalid answer to a question; at is its position in the request.
func (s *Service) suits(question *agui.Interrupt, v Request, at string) error {
	answers := v.Decision == string(runs.DecisionAnswer)
	switch {
	case !IsQuestion(question) && answers:
		var text *string
		if err := json.Unmarshal(v.Content, &text); err != nil || text == nil {
			return InvalidAnswer(contentPointer(at), "must be text: the result to give the model")
		}
		return nil
	case !IsQuestion(question), v.Decision == string(runs.DecisionReject), v.Decision == string(runs.DecisionCancel):
		return nil
	case !answers:
		return InvalidAnswer(at+"/decision", `must be "answer" or "reject": it is a tool that asks`)
	case s.schemas == nil || len(question.ResponseSchema) == 0:
		return nil
	}
	pointer, reason, err := s.schemas.Fits(question.ResponseSchema, v.Content)
	if err != nil || reason == "" {
		return err
	}
	return InvalidAnswer(contentPointer(at)+pointer, reason)
}

func questionOf(asked []agui.Interrupt, id string) *agui.Interrupt {
	i := slices.IndexFunc(asked, func(q agui.Interrupt) bool { return q.ID == id })
	if i < 0 {
		return nil
	}
	return &asked[i]
}

func hasInterrupt(thread *snapshot.Snapshot, id string) bool {
	return slices.ContainsFunc(thread.Entries, func(e snapshot.Entry) bool { return e.Message.ID == id })
}
