package runs

import (
	"cmp"
	"slices"
	"time"
)

// An approval with a quorum is a vote. A proposal is the set of arguments that a vote is for: the
// model's, or those of an edit. The call is made when the quorum votes for one proposal. Each
// person has one vote, the last one that they cast. A decision that the call may not be made needs
// no quorum.

// Contradicts reports whether one of the decisions differs from what was decided before.
func (s *Interrupts) Contradicts(decisions []Decision) bool {
	return slices.ContainsFunc(decisions, func(d Decision) bool {
		c := s.Find(d.CallID)
		return c != nil && c.Decision != nil && !c.Decision.isRepeatedBy(d)
	})
}

// ConflictingVote returns the vote that keeps one of the decisions from being counted: an edit to
// other arguments, by another person. The vote names the call. nil = there is none.
func (s *Interrupts) ConflictingVote(decisions []Decision) *Decision {
	for _, d := range decisions {
		c := s.Find(d.CallID)
		if c == nil || c.Decision != nil || c.Approval == nil || !d.Approves() {
			continue
		}
		if conflict := c.otherEdit(d.By, c.editOf(d)); conflict != nil {
			vote := *conflict
			vote.CallID = d.CallID
			return &vote
		}
	}
	return nil
}

// editOf returns the digest of the arguments to which a decision edits the call's; "" = it leaves
// those of the model.
func (c *Interrupt) editOf(d Decision) string {
	if d.Args == c.Approval.Args {
		return ""
	}
	return d.Args
}

// otherEdit returns the vote of another person than by for an edit to arguments other than edit;
// nil = there is none.
func (c *Interrupt) otherEdit(by, edit string) *Decision {
	for i := range c.Votes {
		if v := &c.Votes[i]; v.By != by && edit != "" && v.Args != "" && v.Args != edit {
			return v
		}
	}
	return nil
}

// DecideAll takes the decisions about calls for which about is true.
func (s *Interrupts) DecideAll(decisions []Decision, now time.Time, about func(*Interrupt) bool) {
	for _, d := range decisions {
		if c := s.Find(d.CallID); c != nil && about(c) {
			s.Decide(d, now)
		}
	}
}

func (a *Approval) quorum() int { return max(1, a.Quorum) }

// canonical returns the digest that calls with equal arguments share.
func (a *Approval) canonical() string { return cmp.Or(a.Canonical, a.Args) }

// maxVotes bounds the votes without a decision: one less than the quorum, for the model's arguments
// and for one edit.
func (a *Approval) maxVotes() int {
	if a == nil {
		return 0
	}
	return 2 * (a.quorum() - 1)
}

// Decide takes a decision about a call, unless the call is decided or expired. An approval is a
// vote if a quorum is needed. now is the workflow's time.
func (s *Interrupts) Decide(d Decision, now time.Time) DecisionResult {
	c := s.Find(d.CallID)
	switch {
	case c == nil, !c.answeredBy(d):
		return DecisionResult{Error: ErrorUnknownCall}
	case c.Decision != nil:
		return c.recorded(d)
	case c.expired(now) && d.Kind != DecisionCancel:
		return DecisionResult{Error: ErrorExpired}
	}
	if d.Kind != DecisionApprove {
		d.Remember = ""
	}
	if c.Approval != nil && d.Approves() {
		if result, open := c.vote(&d); open {
			if result.Error == "" && result.Recorded == nil {
				s.notify(EventVoted, now, c)
			}
			return result
		}
	}
	c.Votes = c.votesOfOthers(d.By) // the decision is this person's last word
	if c.Approval != nil && d.Args == "" {
		d.Args = c.Approval.Args
	}
	c.Decision = &d
	s.notify(EventDecided, now, s.release(c, now)...)
	return DecisionResult{}
}

// recorded answers a decision about a call that is decided.
func (c *Interrupt) recorded(d Decision) DecisionResult {
	before := DecisionResult{Recorded: c.Decision}
	counted := func(v Decision) bool { return v.By == d.By && v.isRepeatedBy(d) && c.agrees(v) }
	switch {
	case c.Decision.isRepeatedBy(d), slices.ContainsFunc(c.Votes, counted):
	case c.Decision.Kind == DecisionExpire:
		before.Error = ErrorExpired
	default:
		before.Error = ErrorDecided
	}
	return before
}

// vote counts an approval, in place of the person's earlier vote. open tells that the call stays
// undecided, and result what happened to the vote. Otherwise the vote completes the quorum: d is
// the decision, and remembers only what the whole quorum remembers.
func (c *Interrupt) vote(d *Decision) (result DecisionResult, open bool) {
	v := Decision{Kind: d.Kind, Digest: d.Digest, Input: d.Input, By: d.By, Remember: d.Remember, Args: c.editOf(*d)}
	repeats := func(cast Decision) bool { return cast.By == v.By && cast.isRepeatedBy(v) }
	if at := slices.IndexFunc(c.Votes, repeats); at >= 0 {
		cast := c.Votes[at]
		return DecisionResult{Recorded: &cast, Missing: c.missing(v.Args), Proposals: c.tallies()}, true
	}
	if other := c.otherEdit(v.By, v.Args); other != nil {
		conflict := *other
		return DecisionResult{Error: ErrorOtherEdit, Recorded: &conflict}, true
	}
	others := c.votesOfOthers(v.By)
	agree, remember := 1, d.Remember
	for _, other := range others {
		if other.Args == v.Args {
			agree, remember = agree+1, remember.narrowest(other.Remember)
		}
	}
	if agree >= c.Approval.quorum() {
		d.Remember = remember
		return DecisionResult{}, false
	}
	c.Votes = append(others, v)
	return DecisionResult{Missing: c.missing(v.Args), Proposals: c.tallies()}, true
}

// votesOfOthers returns the votes without that of one person.
func (c *Interrupt) votesOfOthers(by string) []Decision {
	return slices.DeleteFunc(slices.Clone(c.Votes), func(v Decision) bool { return v.By == by })
}

// tallies counts the votes for each proposal: the model's arguments first, then the edit, if
// an approver votes for one.
func (c *Interrupt) tallies() []Tally {
	count := func(args string) Tally {
		missing := c.missing(args)
		return Tally{Args: cmp.Or(args, c.Approval.Args), Votes: c.Approval.quorum() - missing, Missing: missing}
	}
	tallies := []Tally{count("")}
	if at := slices.IndexFunc(c.Votes, func(v Decision) bool { return v.Args != "" }); at >= 0 {
		tallies = append(tallies, count(c.Votes[at].Args))
	}
	return tallies
}

// Tallies counts the votes for each proposal while the call waits for a quorum; nil = nobody votes
// about it.
func (c *Interrupt) Tallies() []Tally {
	if c.Approval == nil || c.Approval.quorum() == 1 || c.Decision != nil {
		return nil
	}
	return c.tallies()
}

// missing returns how many further votes for some arguments complete the quorum; "" = the model's
// arguments.
func (c *Interrupt) missing(args string) int {
	missing := c.Approval.quorum()
	for _, v := range c.Votes {
		if v.Args == args {
			missing--
		}
	}
	return missing
}

// agrees reports whether a vote is for the arguments with which the call is made.
func (c *Interrupt) agrees(v Decision) bool {
	return c.Decision.Approves() && (v.Args == c.Decision.Args || v.Args == "" && c.Decision.Args == c.Approval.Args)
}

// DecidingVotes returns the votes of a quorum without the last one, which is the decision.
func (c *Interrupt) DecidingVotes() []Vote {
	var votes []Vote
	for _, v := range c.Votes {
		if c.agrees(v) {
			votes = append(votes, Vote{Digest: v.Digest, Input: v.Input})
		}
	}
	return votes
}

// release decides the other calls that a remembered approval covers, and returns all calls that it
// decided.
func (s *Interrupts) release(decided *Interrupt, now time.Time) []*Interrupt {
	released := []*Interrupt{decided}
	d := decided.Decision
	for i := range s.Items {
		c := &s.Items[i]
		open := c.Decision == nil && c.Approval != nil && !c.expired(now)
		if d.Remember == "" || !open || c.Tool != decided.Tool ||
			d.Remember == RememberArguments && c.Approval.canonical() != decided.Approval.canonical() ||
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
