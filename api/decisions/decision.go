package decisions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// removeFromInbox removes an interrupt from the list when a decision shows that it is no longer
// open. Failing is harmless: it would stay listed for some time.
func (s *Service) removeFromInbox(ctx context.Context, thread stream.Thread, now *snapshot.Snapshot, id string, err error) {
	var p *problem.Problem
	if s.index == nil || !errors.As(err, &p) {
		return
	}
	if p.Code != codeUnknownApproval && questionOf(now.Interrupts, id) != nil {
		return
	}
	if err := s.index.Forget(ctx, thread.Tenant, thread.ID, id); err != nil {
		s.find.Logger.WarnContext(ctx, "an approval that waits no more stays listed", "thread", thread.ID, "approval", id, "error", err)
	}
}

// Asked is a request about the interrupt with an ID.
type Asked struct {
	ID      string
	Request Request
}

// Outcome is what became of a request: a decision that stands, or in Err why it does not.
type Outcome struct {
	Decided
	// proposal is the record of the decision, if the thread continues with it; 0 = the log shows no
	// effect yet.
	proposal uint64
	Err      error
}

// Decide decides about one call of a thread.
func (s *Service) Decide(ctx context.Context, thread stream.Thread, id string, v Request) (Decided, error) {
	answer := s.DecideAll(ctx, thread, []Asked{{id, v}})[0]
	return answer.Decided, answer.Err
}

// DecideAll decides about calls of one thread, as many as fit into one update at a time, and
// answers in their order. An interrupt that turns out to be resolved is removed from the inbox.
func (s *Service) DecideAll(ctx context.Context, thread stream.Thread, all []Asked) []Outcome {
	answers := make([]Outcome, 0, len(all))
	for some := range slices.Chunk(all, runs.MaxInterrupts) {
		answers = append(answers, s.decideSome(ctx, thread, some)...)
	}
	return answers
}

func (s *Service) decideSome(ctx context.Context, thread stream.Thread, all []Asked) []Outcome {
	answers := make([]Outcome, len(all))
	now, err := s.find.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return failAll(answers, err)
	}
	var decisions []runs.Decision
	var of []int // their places
	for i, a := range all {
		d, err := s.proposeAnswer(ctx, thread, now, a)
		if err != nil {
			answers[i].Err = err
			continue
		}
		decisions, of = append(decisions, d), append(of, i)
	}
	if len(decisions) > 0 {
		for n, answer := range s.sendDecisions(ctx, thread, all, of, decisions) {
			answers[of[n]] = answer
		}
	}
	for i, a := range all {
		if answer := &answers[i]; answer.Err == nil {
			answer.Cursor = s.find.EffectCursor(now, answer.proposal)
		}
		s.removeFromInbox(ctx, thread, now, a.ID, answers[i].Err)
	}
	return answers
}

func failAll(answers []Outcome, err error) []Outcome {
	for i := range answers {
		answers[i].Err = err
	}
	return answers
}

// proposeAnswer writes a decision about an interrupt to the log.
func (s *Service) proposeAnswer(ctx context.Context, thread stream.Thread, now *snapshot.Snapshot, a Asked) (runs.Decision, error) {
	question := questionOf(slices.Concat(now.Interrupts, now.Answered), a.ID)
	if question == nil {
		return runs.Decision{}, NoApproval(a.ID)
	}
	v, err := a.Request.normalized(now, question, "")
	if err == nil {
		err = s.mayDecide(ctx, thread, now, question, v, "")
	}
	if err != nil {
		return runs.Decision{}, err
	}
	return s.propose(ctx, stream.Run{Thread: thread, ID: now.RunID}, question, v, request.ChannelOf(ctx))
}

// sendDecisions has the thread's workflow take decisions; of are their indices in the request.
func (s *Service) sendDecisions(ctx context.Context, thread stream.Thread, all []Asked, of []int, decisions []runs.Decision) []Outcome {
	answers := make([]Outcome, len(decisions))
	var taken runs.Decided
	err := s.commands.Update(ctx, thread, runs.UpdateDecide, runs.Decide{Decisions: decisions}, &taken)
	var p *problem.Problem
	gone := errors.As(err, &p) && p.Code == commands.CodeNotActive
	if err != nil && !gone {
		return failAll(answers, err)
	}
	for n, d := range decisions {
		id := all[of[n]].ID
		if gone || taken.Results[n].Error == runs.ErrorUnknownCall {
			answers[n].Decided, answers[n].Err = s.decidedBefore(ctx, thread, id, d)
			continue
		}
		answers[n].Decided, answers[n].Err = s.outcome(ctx, id, d, taken.Results[n])
		if taken.Results[n].Settled {
			answers[n].proposal = d.Input
		}
	}
	return answers
}

// outcome returns what the workflow made of a decision.
func (s *Service) outcome(ctx context.Context, id string, d runs.Decision, r runs.DecisionResult) (Decided, error) {
	answer := Decided{ID: id, Decision: string(d.Kind), Missing: r.Missing, Proposals: proposals(r.Proposals)}
	if r.Recorded == nil {
		if r.Error != "" {
			return Decided{}, NoApproval(id)
		}
		return answer, nil
	}
	before, err := s.standing(ctx, *r.Recorded)
	if err != nil {
		return Decided{}, err
	}
	switch r.Error {
	case "":
	case runs.ErrorDecided:
		same, err := s.hasSameEffect(ctx, d, before)
		if err != nil {
			return Decided{}, err
		}
		if !same {
			return Decided{}, errDecided(before.recordedAs(id))
		}
	case runs.ErrorExpired:
		return Decided{}, errTooLate(before.recordedAs(id))
	case runs.ErrorOtherEdit:
		p := problem.New(http.StatusConflict, runs.ErrorOtherEdit, "there are votes for an edit to other arguments: vote for that one or for the original arguments, or reject the call")
		p.Recorded = before.recordedAs(id)
		return Decided{}, p
	default:
		return Decided{}, NoApproval(id)
	}
	answer.Repeated, answer.Recorded = true, before.recordedAs(id)
	return answer, nil
}

// proposals shows the votes for each proposal: the model's arguments first, then the edits.
func proposals(tallies []runs.Tally) []inbox.Proposal {
	var all []inbox.Proposal
	for i, t := range tallies {
		p := inbox.Proposal{ArgsDigest: t.Args, Decision: string(runs.DecisionApprove), Votes: t.Votes, Missing: t.Missing}
		if i > 0 {
			p.Decision = string(runs.DecisionEdit)
		}
		all = append(all, p)
	}
	return all
}

// hasSameEffect reports whether a decision has the effect of a recorded one: its kind, and the
// arguments of an edit, the answer, or the reason of a rejection. The caller and the scope make no
// difference.
func (s *Service) hasSameEffect(ctx context.Context, d runs.Decision, before *standing) (bool, error) {
	if d.Kind != before.Kind {
		return false, nil
	}
	switch d.Kind {
	case runs.DecisionApprove:
		return true, nil
	case runs.DecisionEdit:
		return d.Args == before.Args, nil
	}
	mine, err := s.standing(ctx, d)
	if err != nil {
		return false, err
	}
	return mine.reason == before.reason && bytes.Equal(mine.content, before.content), nil
}

// decidedBefore answers from the log, if the thread has continued.
func (s *Service) decidedBefore(ctx context.Context, thread stream.Thread, id string, d runs.Decision) (Decided, error) {
	now, err := s.find.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return Decided{}, err
	}
	question := questionOf(slices.Concat(now.Interrupts, now.Answered), id)
	if question == nil {
		return Decided{}, NoApproval(id)
	}
	before, err := s.became(ctx, thread, now, question)
	if err != nil {
		return Decided{}, err
	}
	if before == nil {
		return Decided{}, NoApproval(id)
	}
	voted := slices.ContainsFunc(before.votes, func(digest string) bool { return digest == d.Digest })
	same, err := s.hasSameEffect(ctx, d, &before.standing)
	switch {
	case err != nil:
		return Decided{}, err
	case voted, same:
		return Decided{ID: id, Decision: string(d.Kind), Repeated: true, Recorded: before.recordedAs(id)}, nil
	case before.Kind == runs.DecisionExpire:
		return Decided{}, errTooLate(before.recordedAs(id))
	}
	return Decided{}, errDecided(before.recordedAs(id))
}

// errDecided refuses a decision, because another one stands.
func errDecided(stands *Decided) *problem.Problem {
	detail := fmt.Sprintf("the approval %.100q is decided: %s", stands.ID, stands.Decision)
	if stands.By != "" {
		detail += " by " + stands.By
	}
	p := problem.New(http.StatusConflict, "decided", detail)
	p.Recorded = stands
	return p
}

func errTooLate(stands *Decided) *problem.Problem {
	p := problem.New(http.StatusGone, "expired", fmt.Sprintf("the time to decide about %.100q is over", stands.ID))
	p.Recorded = stands
	return p
}

// codeUnknownApproval is the code of the problem that there is no such interrupt.
const codeUnknownApproval = "unknown_approval"

// NoApproval returns the problem of an interrupt that the thread does not have, or that does not
// wait for a decision.
func NoApproval(id string) *problem.Problem {
	return problem.New(http.StatusNotFound, codeUnknownApproval, fmt.Sprintf("the thread does not wait for a decision about %.100q", id))
}

// Short returns a decision without arguments of more than inbox.MaxArgs bytes. All entries of a
// batch may name the same decision, so the answer could be many times larger than the arguments.
func (d *Decided) Short() *Decided {
	if len(d.Args) <= inbox.MaxArgs {
		return d
	}
	without := *d
	without.Args, without.Truncated = nil, true
	return &without
}
