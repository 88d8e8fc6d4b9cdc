package workflows

import (
	"slices"
	"time"
)

// Approvals are votes: a call is made when as many different people have approved as its rule says, of the
// same arguments. What one person says otherwise, that it may not be made, decides at once.

// Vote refers to what somebody said who approved: its digest, and the proposal that has it.
type Vote struct {
	Digest string `json:"digest"`
	Input  uint64 `json:"input,omitempty"`
}

// approves tells whether a decision is for making the call.
func (d Decision) approves() bool { return d.Verdict == VerdictApprove || d.Verdict == VerdictEdit }

// isRepeatedBy tells whether another one says the same.
func (d Decision) isRepeatedBy(other Decision) bool {
	return d.Digest == other.Digest && d.Verdict == other.Verdict
}

func (a *Approval) quorum() int { return max(1, a.Quorum) }

// maxVotes is how many votes there can be that do not decide: all but one of a quorum, for the model's
// arguments and for one edit of them.
func (a *Approval) maxVotes() int {
	if a == nil {
		return 0
	}
	return 2 * (a.quorum() - 1)
}

// decide takes what somebody says about a call, if nothing was decided.
func (w *Waits) decide(d Decision, now time.Time) DecisionResult {
	c := w.find(d.CallID)
	switch {
	case c == nil, !c.answeredBy(d):
		return DecisionResult{Error: ErrorUnknownCall}
	case c.Decision != nil:
		return c.recorded(d)
	case c.expired(now) && d.Verdict != VerdictCancel:
		return DecisionResult{Error: ErrorExpired}
	}
	d.Remember = d.Remember && d.Verdict == VerdictApprove
	if c.Approval != nil && d.approves() {
		if result, open := c.vote(&d); open {
			if result == (DecisionResult{Missing: result.Missing}) {
				w.note(NoticeVoted, now, c)
			}
			return result
		}
	}
	if c.Approval != nil && d.Args == "" {
		d.Args = c.Approval.Args
	}
	c.Decision = &d
	w.note(NoticeDecided, now, w.release(c, now)...)
	return DecisionResult{}
}

// recorded answers a decision about a call that is decided.
func (c *Waiting) recorded(d Decision) DecisionResult {
	before := DecisionResult{Recorded: c.Decision}
	counted := func(v Decision) bool { return v.By == d.By && v.isRepeatedBy(d) && c.agrees(v) }
	switch {
	case c.Decision.isRepeatedBy(d), slices.ContainsFunc(c.Votes, counted):
	case c.Decision.Verdict == VerdictExpire:
		before.Error = ErrorExpired
	default:
		before.Error = ErrorDecided
	}
	return before
}

// vote counts an approval. open tells that the call is as undecided as before, and result what became of
// the vote; otherwise it completes the quorum, and remembers if all have said so.
func (c *Waiting) vote(d *Decision) (result DecisionResult, open bool) {
	v := Decision{Verdict: d.Verdict, Digest: d.Digest, Input: d.Input, By: d.By, Remember: d.Remember}
	if d.Args != c.Approval.Args {
		v.Args = d.Args
	}
	agree, remember := 1, d.Remember
	for i := range c.Votes {
		switch other := &c.Votes[i]; {
		case other.By == v.By && other.isRepeatedBy(*d):
			return DecisionResult{Recorded: other, Missing: c.missing(v.Args)}, true
		case other.By == v.By:
			return DecisionResult{Error: ErrorDecided, Recorded: other}, true
		case other.Args == v.Args:
			agree, remember = agree+1, remember && other.Remember
		case other.Args != "" && v.Args != "":
			result = DecisionResult{Error: ErrorOtherEdit, Recorded: other}
		}
	}
	if result.Error != "" {
		return result, true
	}
	if d.Remember = remember; agree >= c.Approval.quorum() {
		return DecisionResult{}, false
	}
	c.Votes = append(c.Votes, v)
	return DecisionResult{Missing: c.missing(v.Args)}, true
}

// missing is how many more people have to approve of some arguments; empty are the model's.
func (c *Waiting) missing(args string) int {
	missing := c.Approval.quorum()
	for _, v := range c.Votes {
		if v.Args == args {
			missing--
		}
	}
	return missing
}

// agrees tells whether a vote is for the arguments with which the call is made.
func (c *Waiting) agrees(v Decision) bool {
	return c.Decision.approves() && (v.Args == c.Decision.Args || v.Args == "" && c.Decision.Args == c.Approval.Args)
}

// decidedWith are the votes that made a quorum, without the last one.
func (c *Waiting) decidedWith() []Vote {
	var votes []Vote
	for _, v := range c.Votes {
		if c.agrees(v) {
			votes = append(votes, Vote{Digest: v.Digest, Input: v.Input})
		}
	}
	return votes
}

// release makes the other calls as well that a decision is to be remembered for, and returns all of them.
func (w *Waits) release(decided *Waiting, now time.Time) []*Waiting {
	released := []*Waiting{decided}
	d := decided.Decision
	for i := range w.Calls {
		c := &w.Calls[i]
		open := c.Decision == nil && c.Approval != nil && !c.expired(now)
		if !d.Remember || !open || c.Tool != decided.Tool ||
			c.Approval.Rule != decided.Approval.Rule || c.Approval.Policy != decided.Approval.Policy { // that of another agent is another rule
			continue
		}
		same := *d
		same.CallID, same.Args = c.ID, c.Approval.Args
		c.Decision = &same
		released = append(released, c)
	}
	return released
}
