package api

import (
	"context"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/inbox"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Only the thread's workflow knows at once what was decided. When it has gone on, or is not to be asked, the log
// tells: the runs have what was carried out, and the audit, a moment later, also what came to nothing since the run
// failed, and what is decided while others are asked about the calls beside.

// settlement is what the log knows to have been decided about a question.
type settlement struct {
	standing
	votes []string // digests of the quorum's other votes
}

// became looks up what was decided about a question; nil = nothing.
func (s *Server) became(ctx context.Context, thread stream.Thread, now *snapshot.Snapshot, question *agui.Interrupt) (*settlement, error) {
	by, err := stream.QuestionSourceOf(*question)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(now.Decided, func(d stream.Decided) bool { return d.CallID == question.ToolCallID && d.Question == by.Number })
	if at >= 0 {
		return s.carriedOut(ctx, &now.Decided[at])
	}
	past, err := inbox.History(ctx, s.Log, thread)
	if err != nil {
		return nil, err
	}
	at = slices.IndexFunc(past, func(p *inbox.Past) bool { return p.ID == question.ID && p.Status != inbox.StatusOpen })
	if at < 0 {
		return nil, nil
	}
	return toldOf(past[at]), nil
}

// carriedOut reads a decision that a run has carried out.
func (s *Server) carriedOut(ctx context.Context, d *stream.Decided) (*settlement, error) {
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

// toldOf is what the audit has of an approval that is not open; nil = nobody decided.
func toldOf(past *inbox.Past) *settlement {
	d := &settlement{standing: standing{Decision: runs.Decision{CallID: past.ToolCallID, Kind: runs.DecisionExpire}}}
	last := len(past.Decisions) - 1
	if past.Status == inbox.StatusExpired || last < 0 {
		return d
	}
	end := past.Decisions[last]
	if end.Decision == string(runs.DecisionCancel) && end.Digest == "" {
		return nil // the run ended without having waited for it
	}
	d.Kind, d.Digest, d.Args = runs.DecisionKind(end.Decision), end.Digest, end.ArgsDigest
	d.by, d.at, d.args, d.content, d.reason = end.By, end.At, end.Args, end.Content, end.Reason
	for _, vote := range past.Decisions[:last] {
		if d.approves() && vote.ArgsDigest == end.ArgsDigest { // else it came to nothing
			d.votes = append(d.votes, vote.Digest)
		}
	}
	return d
}

func (d *standing) approves() bool {
	return d.Kind == runs.DecisionApprove || d.Kind == runs.DecisionEdit
}

// settled refuses what would need a question to be open, as a decision would be refused; nil = as far as the log knows, it
// is open.
func (s *Server) settled(ctx context.Context, thread stream.Thread, q *question) error {
	d, err := s.became(ctx, thread, q.thread, &q.Interrupt)
	switch {
	case err != nil:
		return err
	case d != nil && d.Kind == runs.DecisionExpire:
		return errTooLate(d.as(q.ID))
	case d != nil:
		return errDecided(d.as(q.ID))
	case !q.open:
		return errNoApproval(q.ID)
	}
	return nil
}
