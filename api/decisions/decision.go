package decisions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file has the path of a decision that does not arrive with an input: Decide and DecideAll.
// resume.go has the path of those that do.

// Target is a decision that a client requests about the interrupt with an ID.
type Target struct {
	ID      string
	Request Request
}

// Outcome is the result of one request: the decision that was made or repeated, or in Err why it
// was refused or failed.
type Outcome struct {
	Decided
	// proposal is the record of the decision; 0 = it has none of its own. continues tells that the
	// thread continues with the decision.
	proposal  uint64
	continues bool
	Err       error
}

// Decide makes one decision about an interrupt of a thread, for the caller in ctx. It blocks until
// the workflow has accepted or refused the decision.
//
// Errors: 403 not_an_approver or not_by_requester, 404 unknown_approval, 409 decided or other_edit,
// 410 expired, 422 for a decision that does not fit. After another error the outcome is unknown,
// and the same decision may be sent again.
func (s *Service) Decide(ctx context.Context, thread stream.Thread, id string, v Request) (Decided, error) {
	answer := s.DecideAll(ctx, thread, []Target{{id, v}})[0]
	return answer.Decided, answer.Err
}

// DecideAll makes decisions about interrupts of one thread, and returns their outcomes in the same
// order. Each is judged by itself: an invalid one does not affect the others. An update takes at
// most runs.MaxInterrupts decisions, so a longer list needs several. Interrupts that turn out to be
// resolved are removed from the inbox.
func (s *Service) DecideAll(ctx context.Context, thread stream.Thread, all []Target) []Outcome {
	answers := make([]Outcome, 0, len(all))
	for some := range slices.Chunk(all, runs.MaxInterrupts) {
		answers = append(answers, s.decideSome(ctx, thread, some)...)
	}
	return answers
}

// decideSome is DecideAll for as many decisions as fit into one update.
func (s *Service) decideSome(ctx context.Context, thread stream.Thread, all []Target) []Outcome {
	answers := make([]Outcome, len(all))
	snap, err := s.find.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return failAll(answers, err)
	}
	var decisions []runs.Decision
	var of []int // index in all of each decision
	for i, a := range all {
		d, err := s.proposeDecision(ctx, thread, snap, a)
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
			answer.Cursor = s.find.EffectCursor(snap, answer.proposal, answer.continues)
		}
		s.removeFromInbox(ctx, thread, snap, a.ID, answers[i].Err)
	}
	return answers
}

// failAll sets the error of all outcomes.
func failAll(answers []Outcome, err error) []Outcome {
	for i := range answers {
		answers[i].Err = err
	}
	return answers
}

// proposeDecision checks one decision against the snapshot, and writes it to the log as a proposal.
// Resolved interrupts are accepted here: the workflow and the log tell whether the decision repeats
// the one that stands. An unknown interrupt is a 404.
func (s *Service) proposeDecision(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot, a Target) (runs.Decision, error) {
	interrupt := interruptByID(slices.Concat(snap.Interrupts, snap.Answered), a.ID)
	if interrupt == nil {
		return runs.Decision{}, UnknownApproval(a.ID)
	}
	v, err := a.Request.normalized(snap, interrupt, "")
	if err == nil {
		err = s.mayDecide(ctx, thread, snap, interrupt, v, "")
	}
	if err != nil {
		return runs.Decision{}, err
	}
	return s.writeProposal(ctx, stream.Run{Thread: thread, ID: snap.RunID}, interrupt, v, request.ChannelOf(ctx))
}

// sendDecisions sends proposed decisions to the thread's workflow, and returns their outcomes. of
// has, for each decision, its index in all. If no workflow runs, or it does not know the call, the
// thread has continued, and the log answers (decidedBefore). If the update fails, all outcomes are
// that error: it is unknown which decisions were taken.
func (s *Service) sendDecisions(ctx context.Context, thread stream.Thread, all []Target, of []int, decisions []runs.Decision) []Outcome {
	answers := make([]Outcome, len(decisions))
	var taken runs.DecideResult
	err := s.commands.Update(ctx, thread, runs.UpdateDecide, runs.DecideRequest{Decisions: decisions}, &taken)
	var p *problem.Problem
	gone := errors.As(err, &p) && p.Code == commands.CodeNotActive
	if err != nil && !gone {
		return failAll(answers, err)
	}
	read := map[uint64]*standing{} // several entries may be about the same decision, which may be large
	for n, d := range decisions {
		id := all[of[n]].ID
		if gone || taken.Results[n].Error == runs.ErrorUnknownCall {
			answers[n].Decided, answers[n].Err = s.decidedBefore(ctx, thread, id, d)
			continue
		}
		answers[n].Decided, answers[n].Err = s.outcome(ctx, id, d, taken.Results[n], read)
		answers[n].proposal, answers[n].continues = d.Input, taken.Results[n].Settled
		if stands := taken.Results[n].Recorded; stands != nil { // the audit has that one
			answers[n].proposal = stands.Input
		}
	}
	return answers
}

// outcome converts the workflow's result for a decision. A recorded decision with the same effect
// makes the request a repetition; one with another effect, the problem of a conflict. read has the
// recorded decisions that were read, by proposal.
func (s *Service) outcome(ctx context.Context, id string, d runs.Decision, r runs.DecisionResult, read map[uint64]*standing) (Decided, error) {
	answer := Decided{ID: id, Decision: string(d.Kind), Missing: r.Missing, Proposals: proposals(r.Proposals)}
	if r.Recorded == nil {
		if r.Error != "" {
			return Decided{}, UnknownApproval(id)
		}
		return answer, nil
	}
	before := read[r.Recorded.Input]
	if before == nil || before.Input == 0 {
		var err error
		if before, err = s.readStanding(ctx, *r.Recorded); err != nil {
			return Decided{}, err
		}
		read[r.Recorded.Input] = before
	}
	switch r.Error {
	case "":
	case runs.ErrorDecided:
		// The workflow compares digests, which contain the caller. To a client, an equal decision
		// of another approver is no conflict.
		same, err := s.hasSameEffect(ctx, d, before)
		if err != nil {
			return Decided{}, err
		}
		if !same {
			return Decided{}, errDecided(before.recordedAs(id))
		}
	case runs.ErrorExpired:
		return Decided{}, errExpired(before.recordedAs(id))
	case runs.ErrorOtherEdit:
		return Decided{}, errOtherEdit(before.recordedAs(id))
	default:
		return Decided{}, UnknownApproval(id)
	}
	answer.Repeated, answer.Recorded = true, before.recordedAs(id)
	return answer, nil
}

// proposals converts the workflow's tallies of votes: first the votes for the model's arguments,
// then those for edits.
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

// hasSameEffect reports whether a decision has the same effect as a recorded one: its kind, and the
// arguments of an edit, the answer, or the reason of a rejection. The caller and the scope of
// remember make no difference.
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
	mine, err := s.readStanding(ctx, d)
	if err != nil {
		return false, err
	}
	return mine.reason == before.reason && bytes.Equal(mine.content, before.content), nil
}

// decidedBefore returns the outcome of a decision from the log, because the thread has continued
// and its workflow does not know the interrupt. A decision that counted, as a vote or by its
// effect, is a repetition. Otherwise the problem names the decision that stands, or is a 404.
func (s *Service) decidedBefore(ctx context.Context, thread stream.Thread, id string, d runs.Decision) (Decided, error) {
	snap, err := s.find.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return Decided{}, err
	}
	interrupt := interruptByID(slices.Concat(snap.Interrupts, snap.Answered), id)
	if interrupt == nil {
		return Decided{}, UnknownApproval(id)
	}
	before, err := s.findDecision(ctx, thread, snap, interrupt)
	if err != nil {
		return Decided{}, err
	}
	if before == nil {
		return Decided{}, UnknownApproval(id)
	}
	// The caller's vote was counted, although another approver has completed the quorum.
	voted := slices.ContainsFunc(before.votes, func(digest string) bool { return digest == d.Digest })
	same, err := s.hasSameEffect(ctx, d, &before.standing)
	switch {
	case err != nil:
		return Decided{}, err
	case voted, same:
		return Decided{ID: id, Decision: string(d.Kind), Repeated: true, Recorded: before.recordedAs(id)}, nil
	case before.Kind == runs.DecisionExpire:
		return Decided{}, errExpired(before.recordedAs(id))
	}
	return Decided{}, errDecided(before.recordedAs(id))
}

// removeFromInbox removes an interrupt from the inbox if the problem of a decision shows that the
// interrupt is not open. err is the error of the decision; nil or a failure changes nothing. The
// inbox is a cache, so a failure to remove is only logged: the interrupt stays listed for a while.
func (s *Service) removeFromInbox(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot, id string, err error) {
	var p *problem.Problem
	if s.index == nil || !errors.As(err, &p) {
		return
	}
	if p.Code != codeUnknownApproval && interruptByID(snap.Interrupts, id) != nil {
		return
	}
	if err := s.index.Forget(ctx, thread.Tenant, thread.ID, id); err != nil {
		s.find.Logger.WarnContext(ctx, "could not remove a resolved interrupt from the inbox", "thread", thread.ID, "approval", id, "error", err)
	}
}

// errDecided returns the 409 decided: another decision stands.
func errDecided(stands *Decided) *problem.Problem {
	detail := fmt.Sprintf("the approval %.100q is already decided: %s", stands.ID, stands.Decision)
	if stands.By != "" {
		detail += " by " + stands.By
	}
	p := problem.New(http.StatusConflict, "decided", detail)
	p.Recorded = stands
	return p
}

// OtherEdit returns the 409 other_edit for an input whose resume has a vote that cannot be counted.
// vote is the other person's, and names the call.
func (s *Service) OtherEdit(ctx context.Context, thread *snapshot.Snapshot, resume []agui.ResumeEntry, vote runs.Decision) error {
	at := slices.IndexFunc(resume, func(e agui.ResumeEntry) bool {
		interrupt := interruptByID(thread.Interrupts, e.InterruptID)
		return interrupt != nil && interrupt.ToolCallID == vote.CallID
	})
	if at < 0 {
		return fmt.Errorf("api: the input has no decision about the call %q", vote.CallID)
	}
	stands, err := s.readStanding(ctx, vote)
	if err != nil {
		return err
	}
	p := errOtherEdit(stands.recordedAs(resume[at].InterruptID))
	p.Pointer = fmt.Sprintf("/resume/%d/payload", at)
	return p
}

// errOtherEdit returns the 409 other_edit: an approver votes for an edit to other arguments.
func errOtherEdit(stands *Decided) *problem.Problem {
	p := problem.New(http.StatusConflict, runs.ErrorOtherEdit, "another approver has voted for an edit with other arguments: vote for that edit or for the original arguments, or reject the call")
	p.Recorded = stands
	return p
}

// errExpired returns the 410 expired: the interrupt expired before the decision.
func errExpired(stands *Decided) *problem.Problem {
	p := problem.New(http.StatusGone, "expired", fmt.Sprintf("the approval %.100q has expired", stands.ID))
	p.Recorded = stands
	return p
}

// codeUnknownApproval is the code of the problem that the thread has no such interrupt.
const codeUnknownApproval = "unknown_approval"

// UnknownApproval returns the 404 for an interrupt that the thread does not have, or that is not
// waiting for a decision.
func UnknownApproval(id string) *problem.Problem {
	return problem.New(http.StatusNotFound, codeUnknownApproval, fmt.Sprintf("the thread has no open approval %.100q", id))
}

// Short returns a decision whose arguments are left out if they exceed inbox.MaxArgs bytes. All
// entries of a batch may name the same decision, so the answer could otherwise be many times larger
// than the arguments.
func (d *Decided) Short() *Decided {
	if len(d.Args) <= inbox.MaxArgs {
		return d
	}
	without := *d
	without.Args, without.Truncated = nil, true
	return &without
}
