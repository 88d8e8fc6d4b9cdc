package runs

import (
	"cmp"
	"slices"
	"time"
)

// An approval with a quorum is a vote. A vote is for a set of arguments: the model's, or those of
// an edit. The call is made when the quorum votes for one set; a Tally counts its votes. Each
// approver has one vote, the last one that they cast. A decision that the call may not be made
// needs no quorum.
//
// An answer to a question whose rule has a quorum is a vote, too. It counts as an edit does, with the
// digest of the answer in ArgsDigest. There is no vote for the model's arguments then.

// Contradicts reports whether one of the decisions differs from what was decided before.
func (s *Interrupts) Contradicts(decisions []Decision) bool {
	return slices.ContainsFunc(decisions, func(d Decision) bool {
		i := s.Find(d.CallID)
		return i != nil && i.Decision != nil && !i.Decision.isRepeatedBy(d)
	})
}

// ConflictingVote returns the vote that keeps one of the decisions from being counted: an edit to
// other arguments, or another answer, by another approver. The vote names the call. nil = there is none.
func (s *Interrupts) ConflictingVote(decisions []Decision) *Decision {
	for _, d := range decisions {
		i := s.Find(d.CallID)
		if i == nil || i.Decision != nil || !i.countsVote(d) {
			continue
		}
		if conflict := i.conflictingVote(d.By, i.votedArgs(d)); conflict != nil {
			vote := *conflict
			vote.CallID = d.CallID
			return &vote
		}
	}
	return nil
}

// votedArgs returns the digest that a vote is for: of edited arguments, or of an answer; "" = the arguments of
// the model.
func (i *Interrupt) votedArgs(d Decision) string {
	if d.ArgsDigest == i.Approval.ArgsDigest {
		return ""
	}
	return d.ArgsDigest
}

// conflictingVote returns the vote of another approver than by for other arguments than voted, or for another
// answer; nil = there is none.
func (i *Interrupt) conflictingVote(by, voted string) *Decision {
	for n := range i.Votes {
		if v := &i.Votes[n]; v.By != by && voted != "" && v.ArgsDigest != "" && v.ArgsDigest != voted {
			return v
		}
	}
	return nil
}

// DecideAll takes the decisions about calls for which about is true.
func (s *Interrupts) DecideAll(decisions []Decision, now time.Time, about func(*Interrupt) bool) {
	for _, d := range decisions {
		if i := s.Find(d.CallID); i != nil && about(i) {
			s.Decide(d, now)
		}
	}
}

func (a *Approval) quorum() int { return max(1, a.Quorum) }

// canonical returns the digest that calls with equal arguments share.
func (a *Approval) canonical() string { return cmp.Or(a.Canonical, a.ArgsDigest) }

// maxVotes bounds the votes without a decision: one less than the quorum, for the model's arguments
// and for one edit.
func (a *Approval) maxVotes() int {
	if a == nil {
		return 0
	}
	return 2 * (a.quorum() - 1)
}

// Decide takes a decision about a call, unless the call is decided or expired. An approval,
// or an answer under a rule, is a vote if a quorum is needed. now is the workflow's time.
func (s *Interrupts) Decide(d Decision, now time.Time) DecisionResult {
	i := s.Find(d.CallID)
	switch {
	case i == nil, !i.answeredBy(d):
		return DecisionResult{Error: ErrorUnknownCall}
	case i.Decision != nil:
		return i.resultForDecided(d)
	case i.expired(now) && d.Kind != DecisionCancel:
		return DecisionResult{Error: ErrorExpired}
	}
	if d.Kind != DecisionApprove {
		d.Remember = ""
	}
	if i.countsVote(d) {
		if result, open := i.castVote(&d); open {
			if result.Error == "" && result.Recorded == nil {
				s.notify(EventVoted, now, i)
			}
			return result
		}
	}
	i.Votes = i.votesOfOthers(d.By) // the decision is this approver's last word
	if i.Approval != nil && d.ArgsDigest == "" {
		d.ArgsDigest = i.Approval.ArgsDigest
	}
	i.Decision = &d
	s.notify(EventDecided, now, s.release(i, now)...)
	return DecisionResult{}
}

// resultForDecided answers a decision about a call that is decided.
func (i *Interrupt) resultForDecided(d Decision) DecisionResult {
	before := DecisionResult{Recorded: i.Decision}
	counted := func(v Decision) bool { return v.By == d.By && v.isRepeatedBy(d) && i.votesForDecision(v) }
	switch {
	case i.Decision.isRepeatedBy(d), slices.ContainsFunc(i.Votes, counted):
	case i.Decision.Kind == DecisionExpire:
		before.Error = ErrorExpired
	default:
		before.Error = ErrorDecided
	}
	return before
}

// castVote counts a vote, in place of the approver's earlier one. open tells that the call
// stays undecided, and result what happened to the vote. Otherwise the vote completes the quorum: d
// is the decision, and remembers only what the whole quorum remembers.
func (i *Interrupt) castVote(d *Decision) (result DecisionResult, open bool) {
	v := Decision{Kind: d.Kind, Digest: d.Digest, Proposal: d.Proposal, By: d.By, Remember: d.Remember, ArgsDigest: i.votedArgs(*d)}
	repeats := func(cast Decision) bool { return cast.By == v.By && cast.isRepeatedBy(v) }
	if at := slices.IndexFunc(i.Votes, repeats); at >= 0 {
		cast := i.Votes[at]
		return DecisionResult{Recorded: &cast, Missing: i.missing(v.ArgsDigest), Tallies: i.tallies()}, true
	}
	if other := i.conflictingVote(v.By, v.ArgsDigest); other != nil {
		conflict := *other
		return DecisionResult{Error: ErrorOtherEdit, Recorded: &conflict}, true
	}
	others := i.votesOfOthers(v.By)
	agree, remember := 1, d.Remember
	for _, other := range others {
		if other.ArgsDigest == v.ArgsDigest {
			agree, remember = agree+1, remember.narrowest(other.Remember)
		}
	}
	if agree >= i.Approval.quorum() {
		d.Remember = remember
		return DecisionResult{}, false
	}
	i.Votes = append(others, v)
	return DecisionResult{Missing: i.missing(v.ArgsDigest), Tallies: i.tallies()}, true
}

// countsVote reports whether a decision about the interrupt is a vote, of which a quorum decides.
func (i *Interrupt) countsVote(d Decision) bool {
	return i.Approval != nil && (d.Approves() || i.Question != nil && d.Kind == DecisionAnswer)
}

// votesOfOthers returns the votes without that of one approver.
func (i *Interrupt) votesOfOthers(by string) []Decision {
	return slices.DeleteFunc(slices.Clone(i.Votes), func(v Decision) bool { return v.By == by })
}

// tallies counts the votes for each set of arguments: the model's arguments first, then the edit,
// if an approver votes for one. A question has only the answer that an approver votes for.
func (i *Interrupt) tallies() (tallies []Tally) {
	count := func(kind DecisionKind, args string) {
		missing := i.missing(args)
		tallies = append(tallies, Tally{Kind: kind, ArgsDigest: cmp.Or(args, i.Approval.ArgsDigest), Votes: i.Approval.quorum() - missing, Missing: missing})
	}
	if i.Question == nil {
		count(DecisionApprove, "")
	}
	if at := slices.IndexFunc(i.Votes, func(v Decision) bool { return v.ArgsDigest != "" }); at >= 0 {
		count(i.Votes[at].Kind, i.Votes[at].ArgsDigest)
	}
	return tallies
}

// Tallies counts the votes for each set of arguments while the call waits for a quorum; nil =
// nobody votes about it.
func (i *Interrupt) Tallies() []Tally {
	if i.Approval == nil || i.Approval.quorum() == 1 || i.Decision != nil {
		return nil
	}
	return i.tallies()
}

// missing returns how many further votes for some arguments complete the quorum; "" = the model's
// arguments.
func (i *Interrupt) missing(args string) int {
	missing := i.Approval.quorum()
	for _, v := range i.Votes {
		if v.ArgsDigest == args {
			missing--
		}
	}
	return missing
}

// votesForDecision reports whether a vote is for the arguments with which the call is made.
func (i *Interrupt) votesForDecision(v Decision) bool {
	return i.countsVote(*i.Decision) && (v.ArgsDigest == i.Decision.ArgsDigest || v.ArgsDigest == "" && i.Decision.ArgsDigest == i.Approval.ArgsDigest)
}

// DecidingVotes returns the votes of a quorum without the last one, which is the decision.
func (i *Interrupt) DecidingVotes() []Vote {
	var votes []Vote
	for _, v := range i.Votes {
		if i.votesForDecision(v) {
			votes = append(votes, Vote{Digest: v.Digest, Proposal: v.Proposal})
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
		item := &s.Items[i]
		open := item.Decision == nil && item.Approval != nil && !item.expired(now)
		if d.Remember == "" || !open || item.Tool != decided.Tool ||
			d.Remember == RememberArguments && item.Approval.canonical() != decided.Approval.canonical() ||
			item.Approval.Rule != decided.Approval.Rule || item.Approval.RuleDigest != decided.Approval.RuleDigest { // that of another agent is another rule
			continue
		}
		same := *d
		same.CallID, same.ArgsDigest = item.ID, item.Approval.ArgsDigest
		item.Decision = &same
		released = append(released, item)
	}
	return released
}
