package api

import (
	"context"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/inbox"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

// Only the thread's workflow knows at once what was decided. When it has gone on, or is not to be asked, the log
// tells: the runs have what was carried out, and the audit, a moment later, also what came to nothing since the run
// failed, and what is decided while others are asked about the calls beside.

// became is what the log knows to have been decided about a question; nil = nothing.
func (s *Server) became(ctx context.Context, thread stream.Thread, now *stream.Reduction, question *agui.Interrupt) (*stream.Decided, error) {
	by, err := stream.RaisedIn(*question)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(now.Decided, func(d stream.Decided) bool { return d.CallID == question.ToolCallID && d.Question == by.Number })
	if at >= 0 {
		return &now.Decided[at], nil
	}
	past, err := inbox.History(ctx, s.Log, thread)
	if err != nil {
		return nil, err
	}
	at = slices.IndexFunc(past, func(p *inbox.Past) bool { return p.ID == question.ID && p.Status != inbox.StatusPending })
	if at < 0 {
		return nil, nil
	}
	return toldOf(past[at]), nil
}

// toldOf is what the audit has of an approval that waits no more; nil = nobody decided.
func toldOf(past *inbox.Past) *stream.Decided {
	d := &stream.Decided{CallID: past.ToolCallID, Verdict: string(workflows.VerdictExpire)}
	last := len(past.Decisions) - 1
	if past.Status == inbox.StatusExpired || last < 0 {
		return d
	}
	end := past.Decisions[last]
	if end.Decision == string(workflows.VerdictCancel) && end.Digest == "" {
		return nil // the run ended without having waited for it
	}
	d.Verdict, d.Digest = end.Decision, end.Digest
	made := end.Decision == string(workflows.VerdictApprove) || end.Decision == string(workflows.VerdictEdit)
	for _, vote := range past.Decisions[:last] {
		if made && vote.ArgsDigest == end.ArgsDigest { // else it came to nothing
			d.Votes = append(d.Votes, stream.Vote{Digest: vote.Digest})
		}
	}
	return d
}

// settled refuses what would need a question to wait, as a decision would be refused; nil = as far as the log knows, it
// waits.
func (s *Server) settled(ctx context.Context, thread stream.Thread, q *question) error {
	d, err := s.became(ctx, thread, q.thread, &q.Interrupt)
	switch {
	case err != nil:
		return err
	case d != nil && d.Verdict == string(workflows.VerdictExpire):
		return errTooLate(&decided{ID: q.ID, Decision: d.Verdict})
	case d != nil:
		return errDecided("it is decided", &decided{ID: q.ID, Decision: d.Verdict})
	case !q.open:
		return errNoApproval()
	}
	return nil
}
