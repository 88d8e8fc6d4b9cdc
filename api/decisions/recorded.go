package decisions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Only the thread's workflow knows a decision at once. If the workflow has continued, or is not
// asked, the log tells: runs have the decisions that they carried out. The audit has, a moment
// later, also decisions of a run that failed, and decisions while other interrupts are open.

// standing is a recorded decision, with its content.
type standing struct {
	runs.Decision
	by     string
	at     time.Time
	args   json.RawMessage
	reason string
	// content is the answer in JSON; nil = none, or unknown.
	content json.RawMessage
}

func (d *standing) recordedAs(id string) *Decided {
	return &Decided{ID: id, Decision: string(d.Kind), By: d.by, At: d.at.UTC(), Args: d.args, Reason: d.reason}
}

// standing reads the content of a recorded decision from the log. A decision by time, or by the end
// of a run, has none.
func (s *Service) standing(ctx context.Context, d runs.Decision) (*standing, error) {
	if d.Input == 0 {
		return &standing{Decision: d}, nil
	}
	said, at, err := s.find.Log.DecisionSaid(ctx, d.Input)
	if err != nil {
		return nil, err
	}
	before := &standing{Decision: d, at: at, args: said.Args, reason: said.Reason}
	if before.content, err = contentOf(said); err != nil {
		return nil, err
	}
	if said.By != nil {
		before.by = said.By.Subject
	}
	return before, nil
}

// contentOf returns the answer of a decision, in JSON; nil = none.
func contentOf(said *stream.Decision) (json.RawMessage, error) {
	if said.Result == nil {
		return said.Content, nil
	}
	text, err := json.Marshal(said.Result.Content.Text())
	if err != nil {
		return nil, fmt.Errorf("api: encode answer: %w", err)
	}
	return text, nil
}

// settlement is what the log has about the decision of an interrupt.
type settlement struct {
	standing
	votes []string // digests of the quorum's other votes
}

// became returns the decision of an interrupt; nil = none.
func (s *Service) became(ctx context.Context, thread stream.Thread, now *snapshot.Snapshot, question *agui.Interrupt) (*settlement, error) {
	by, err := stream.QuestionSourceOf(*question)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(now.Decided, func(d stream.Decided) bool { return d.CallID == question.ToolCallID && d.Question == by.Number })
	if at >= 0 {
		return s.carriedOut(ctx, &now.Decided[at])
	}
	past, err := inbox.History(ctx, s.find.Log, thread)
	if err != nil {
		return nil, err
	}
	at = slices.IndexFunc(past, func(p *inbox.Past) bool { return p.ID == question.ID && p.Status != inbox.StatusOpen })
	if at < 0 {
		return nil, nil
	}
	return settlementOf(past[at]), nil
}

// carriedOut returns the decision that a run has carried out.
func (s *Service) carriedOut(ctx context.Context, d *stream.Decided) (*settlement, error) {
	before, err := s.standing(ctx, runs.Decision{CallID: d.CallID, Kind: runs.DecisionKind(d.Kind), Digest: d.Digest, Input: d.Proposal})
	if err != nil {
		return nil, err
	}
	if len(before.args) > 0 {
		before.Args = runs.DigestArgs(string(before.args))
	}
	done := &settlement{standing: *before}
	for _, v := range d.Votes {
		done.votes = append(done.votes, v.Digest)
	}
	return done, nil
}

// settlementOf returns the decision that the audit has of a closed approval; nil = there is no
// decision.
func settlementOf(past *inbox.Past) *settlement {
	d := &settlement{standing: standing{Decision: runs.Decision{CallID: past.ToolCallID, Kind: runs.DecisionExpire}}}
	last := len(past.Decisions) - 1
	if past.Status == inbox.StatusExpired || last < 0 {
		return d
	}
	end := past.Decisions[last]
	if end.Decision == string(runs.DecisionCancel) && end.Digest == "" {
		return nil // the run ended without waiting for it
	}
	d.Kind, d.Digest, d.Args = runs.DecisionKind(end.Decision), end.Digest, end.ArgsDigest
	d.by, d.at, d.args, d.content, d.reason = end.By, end.At, end.Args, end.Content, end.Reason
	for _, vote := range past.Decisions[:last] {
		if d.approves() && vote.ArgsDigest == end.ArgsDigest { // otherwise the vote did not count
			d.votes = append(d.votes, vote.Digest)
		}
	}
	return d
}

func (d *standing) approves() bool {
	return d.Kind == runs.DecisionApprove || d.Kind == runs.DecisionEdit
}

// CheckOpen refuses a request that needs an open interrupt, as a decision would be refused; nil =
// the interrupt is open as far as the log knows.
func (s *Service) CheckOpen(ctx context.Context, thread stream.Thread, q *Interrupt) error {
	d, err := s.became(ctx, thread, q.Thread, &q.Interrupt)
	switch {
	case err != nil:
		return err
	case d != nil && d.Kind == runs.DecisionExpire:
		return errTooLate(d.recordedAs(q.ID))
	case d != nil:
		return errDecided(d.recordedAs(q.ID))
	case !q.Open:
		return NoApproval(q.ID)
	}
	return nil
}
