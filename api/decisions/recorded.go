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

// This file finds the decision that stands. Only the thread's workflow knows a decision at once. If
// the workflow has continued, or is not asked, the log has it: snapshots have the decisions that
// runs have carried out. The audit has, a moment later, also decisions of a run that failed, and
// decisions that were made while other interrupts of the run are open.

// standing is a recorded decision, with the content that the workflow does not have. Its fields are
// empty for a decision that no person made: an expiry, or the end of a run.
type standing struct {
	runs.Decision
	by     string // the subject; "" = an anonymous caller, or no person
	at     time.Time
	args   json.RawMessage
	reason string
	// content is the answer in JSON; nil = none, or unknown.
	content json.RawMessage
}

// recordedAs returns the decision as problems and answers show it, for the interrupt with an ID.
func (d *standing) recordedAs(id string) *Decided {
	return &Decided{ID: id, Decision: string(d.Kind), By: d.by, At: d.at.UTC(), Args: d.args, Reason: d.reason}
}

// readStanding reads the content of a recorded decision from its proposal in the log. A decision by
// expiry, or by the end of a run, has no proposal and no content.
func (s *Service) readStanding(ctx context.Context, d runs.Decision) (*standing, error) {
	if d.Input == 0 {
		return &standing{Decision: d}, nil
	}
	content, at, err := s.find.Log.DecisionAt(ctx, d.Input)
	if err != nil {
		return nil, err
	}
	before := &standing{Decision: d, at: at, args: content.Args, reason: content.Reason}
	if before.content, err = contentOf(content); err != nil {
		return nil, err
	}
	if content.By != nil {
		before.by = content.By.Subject
	}
	return before, nil
}

// contentOf returns the answer of a decision in JSON; nil = it has none.
func contentOf(content *stream.Decision) (json.RawMessage, error) {
	if content.Result == nil {
		return content.Content, nil
	}
	text, err := json.Marshal(content.Result.Content.Text())
	if err != nil {
		return nil, fmt.Errorf("api: encode answer: %w", err)
	}
	return text, nil
}

// settlement is the decision that resolved an interrupt, as the log has it.
type settlement struct {
	standing
	votes []string // digests of the earlier votes of the quorum
}

// findDecision returns the decision that resolved an interrupt, from the snapshot or else from the
// audit; nil = the log has none. It reads the audit of the whole thread if the snapshot does not
// have the decision.
func (s *Service) findDecision(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot, interrupt *agui.Interrupt) (*settlement, error) {
	by, err := stream.QuestionSourceOf(*interrupt)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(snap.Decided, func(d stream.Decided) bool { return d.CallID == interrupt.ToolCallID && d.Question == by.Number })
	if at >= 0 {
		return s.fromSnapshot(ctx, &snap.Decided[at])
	}
	// Decisions of failed runs, and of runs that still wait for others, are only in the audit.
	past, err := inbox.ReadHistory(ctx, s.find.Log, thread)
	if err != nil {
		return nil, err
	}
	at = slices.IndexFunc(past, func(p *inbox.History) bool { return p.ID == interrupt.ID && p.Status != inbox.StatusOpen })
	if at < 0 {
		return nil, nil
	}
	return settlementOf(past[at]), nil
}

// fromSnapshot returns a decision of the snapshot with its content. The snapshot has the proposal,
// but not the digest of edited arguments, which fromSnapshot computes.
func (s *Service) fromSnapshot(ctx context.Context, d *stream.Decided) (*settlement, error) {
	before, err := s.readStanding(ctx, runs.Decision{CallID: d.CallID, Kind: runs.DecisionKind(d.Kind), Digest: d.Digest, Input: d.Proposal})
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

// settlementOf returns the decision that resolved an approval, from its audit; nil = the run ended
// before a decision.
func settlementOf(past *inbox.History) *settlement {
	d := &settlement{standing: standing{Decision: runs.Decision{CallID: past.ToolCallID, Kind: runs.DecisionExpire}}}
	last := len(past.Decisions) - 1
	if past.Status == inbox.StatusExpired || last < 0 {
		return d
	}
	end := past.Decisions[last]
	if end.Decision == string(runs.DecisionCancel) && end.Digest == "" {
		return nil // the run ended before a decision
	}
	d.Kind, d.Digest, d.Args = runs.DecisionKind(end.Decision), end.Digest, end.ArgsDigest
	d.by, d.at, d.args, d.content, d.reason = end.By, end.At, end.Args, end.Content, end.Reason
	for _, vote := range past.Decisions[:last] {
		// Votes for other arguments did not count.
		if d.approves() && vote.ArgsDigest == end.ArgsDigest {
			d.votes = append(d.votes, vote.Digest)
		}
	}
	return d
}

// approves reports whether the decision lets the call be made.
func (d *standing) approves() bool {
	return d.Kind == runs.DecisionApprove || d.Kind == runs.DecisionEdit
}

// CheckOpen returns nil if an interrupt is open, as far as the log knows. Otherwise it returns the
// problem that a decision would get: 409 decided, 410 expired, or 404. A decision that the workflow
// has just accepted may not be in the log yet, so only the workflow's answer is final.
func (s *Service) CheckOpen(ctx context.Context, thread stream.Thread, q *Interrupt) error {
	d, err := s.findDecision(ctx, thread, q.Thread, &q.Interrupt)
	switch {
	case err != nil:
		return err
	case d != nil && d.Kind == runs.DecisionExpire:
		return errExpired(d.recordedAs(q.ID))
	case d != nil:
		return errDecided(d.recordedAs(q.ID))
	case !q.Open:
		return UnknownApproval(q.ID)
	}
	return nil
}
