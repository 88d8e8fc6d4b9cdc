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

// recordedDecision is a recorded decision, with the content that the workflow does not have. Its
// fields are empty for a decision that no person made: an expiry, or the end of a run.
type recordedDecision struct {
	runs.Decision
	by     string // the subject; "" = an anonymous caller, or no person
	at     time.Time
	args   json.RawMessage
	reason string
	// content is the answer in JSON; nil = none, or unknown.
	content json.RawMessage
}

// receiptFor returns the decision as problems and answers show it, for the interrupt with an ID.
func (d *recordedDecision) receiptFor(id string) *DecisionReceipt {
	return &DecisionReceipt{ID: id, Decision: string(d.Kind), By: d.by, At: d.at.UTC(), Args: d.args, Reason: d.reason}
}

// readDecision reads the content of a recorded decision from its proposal in the log. A decision by
// expiry, or by the end of a run, has no proposal and no content.
func (s *Service) readDecision(ctx context.Context, d runs.Decision) (*recordedDecision, error) {
	if d.Proposal == 0 {
		return &recordedDecision{Decision: d}, nil
	}
	content, at, err := s.finder.Log.DecisionAt(ctx, d.Proposal)
	if err != nil {
		return nil, err
	}
	recorded := &recordedDecision{Decision: d, at: at, args: content.Args, reason: content.Reason}
	if recorded.content, err = contentOf(content); err != nil {
		return nil, err
	}
	if content.By != nil {
		recorded.by = content.By.Subject
	}
	return recorded, nil
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

// resolvedDecision is the decision that resolved an interrupt, as the log has it.
type resolvedDecision struct {
	recordedDecision
	votes []string // digests of the earlier votes of the quorum
}

// findDecision returns the decision that resolved an interrupt, from the snapshot or else from the
// audit; nil = the log has none. It reads the audit of the whole thread if the snapshot does not
// have the decision.
func (s *Service) findDecision(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot, interrupt *agui.Interrupt) (*resolvedDecision, error) {
	source, err := stream.QuestionSourceOf(*interrupt)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(snap.Decided, func(d stream.Decided) bool {
		return d.CallID == stream.CallOf(*interrupt) && d.Question == source.Number
	})
	if i >= 0 {
		return s.decisionFromSnapshot(ctx, &snap.Decided[i])
	}
	// Decisions of failed runs, and of runs that still wait for others, are only in the audit.
	history, err := inbox.ReadHistory(ctx, s.finder.Log, thread)
	if err != nil {
		return nil, err
	}
	i = slices.IndexFunc(history, func(h *inbox.History) bool { return h.ID == interrupt.ID && h.Status != inbox.StatusOpen })
	if i < 0 {
		return nil, nil
	}
	return decisionFromHistory(history[i]), nil
}

// decisionFromSnapshot returns a decision of the snapshot with its content. The snapshot has the
// proposal, but not the digest of edited arguments, which decisionFromSnapshot computes.
func (s *Service) decisionFromSnapshot(ctx context.Context, d *stream.Decided) (*resolvedDecision, error) {
	recorded, err := s.readDecision(ctx, runs.Decision{CallID: d.CallID, Kind: runs.DecisionKind(d.Kind), Digest: d.Digest, Proposal: d.Proposal})
	if err != nil {
		return nil, err
	}
	if len(recorded.args) > 0 {
		recorded.ArgsDigest = runs.DigestArgs(string(recorded.args))
	}
	resolved := &resolvedDecision{recordedDecision: *recorded}
	for _, v := range d.Votes {
		resolved.votes = append(resolved.votes, v.Digest)
	}
	return resolved, nil
}

// decisionFromHistory returns the decision that resolved an approval, from its audit; nil = the run
// ended before a decision.
func decisionFromHistory(history *inbox.History) *resolvedDecision {
	d := &resolvedDecision{recordedDecision: recordedDecision{Decision: runs.Decision{CallID: history.ToolCallID, Kind: runs.DecisionExpire}}}
	last := len(history.Decisions) - 1
	if history.Status == inbox.StatusExpired || last < 0 {
		return d
	}
	end := history.Decisions[last]
	if end.Decision == string(runs.DecisionCancel) && end.Digest == "" {
		return nil // the run ended before a decision
	}
	d.Kind, d.Digest, d.ArgsDigest = runs.DecisionKind(end.Decision), end.Digest, end.ArgsDigest
	d.by, d.at, d.args, d.content, d.reason = end.By, end.At, end.Args, end.Content, end.Reason
	for _, vote := range history.Decisions[:last] {
		// Votes for other arguments, or for another answer, did not count.
		if vote.ArgsDigest == end.ArgsDigest && (d.approval() || vote.Decision == string(runs.DecisionAnswer)) {
			d.votes = append(d.votes, vote.Digest)
		}
	}
	return d
}

// approval reports whether the decision lets the call be made.
func (d *recordedDecision) approval() bool {
	return d.Kind == runs.DecisionApprove || d.Kind == runs.DecisionEdit
}

// CheckOpen returns nil if an interrupt is open, as far as the log knows. Otherwise it returns the
// problem that a decision would get: 409 decided, 410 expired, or 404. A decision that the workflow
// has just accepted may not be in the log yet, so only the workflow's answer is final.
func (s *Service) CheckOpen(ctx context.Context, thread stream.Thread, interrupt *Interrupt) error {
	d, err := s.findDecision(ctx, thread, interrupt.Thread, &interrupt.Interrupt)
	switch {
	case err != nil:
		return err
	case d != nil && d.Kind == runs.DecisionExpire:
		return errExpired(d.receiptFor(interrupt.ID))
	case d != nil:
		return errDecided(d.receiptFor(interrupt.ID))
	case !interrupt.Open:
		return UnknownApproval(interrupt.ID)
	}
	return nil
}
