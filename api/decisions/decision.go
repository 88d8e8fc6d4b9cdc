package decisions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/control/dispatch"
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
	DecisionReceipt
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
func (s *Service) Decide(ctx context.Context, thread stream.Thread, id string, req Request) (DecisionReceipt, error) {
	auditing.Detail(ctx, "decision", req.Decision)
	outcome := s.DecideAll(ctx, thread, []Target{{id, req}})[0]
	return outcome.DecisionReceipt, outcome.Err
}

// DecideAll makes decisions about interrupts of one thread, and returns their outcomes in the same
// order. Each is judged by itself: an invalid one does not affect the others. An update takes at
// most runs.MaxInterrupts decisions, so a longer list needs several. Interrupts that turn out to be
// resolved are removed from the inbox.
func (s *Service) DecideAll(ctx context.Context, thread stream.Thread, targets []Target) []Outcome {
	outcomes := make([]Outcome, 0, len(targets))
	for batch := range slices.Chunk(targets, runs.MaxInterrupts) {
		outcomes = append(outcomes, s.decideBatch(ctx, thread, batch)...)
	}
	return outcomes
}

// decideBatch is DecideAll for as many decisions as fit into one update.
func (s *Service) decideBatch(ctx context.Context, thread stream.Thread, targets []Target) []Outcome {
	outcomes := make([]Outcome, len(targets))
	snap, err := s.finder.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return failAll(outcomes, err)
	}
	var decisions []runs.Decision
	var targetIndexes []int // the index in targets of each decision
	for i, target := range targets {
		d, err := s.proposeDecision(ctx, thread, snap, target)
		if err != nil {
			outcomes[i].Err = err
			continue
		}
		decisions, targetIndexes = append(decisions, d), append(targetIndexes, i)
	}
	if len(decisions) > 0 {
		for n, outcome := range s.sendDecisions(ctx, thread, targets, targetIndexes, decisions) {
			outcomes[targetIndexes[n]] = outcome
		}
	}
	for i, target := range targets {
		if outcome := &outcomes[i]; outcome.Err == nil {
			outcome.Cursor = s.cursorOf(snap, outcome)
		}
		s.removeFromInbox(ctx, thread, snap, target.ID, outcomes[i].Err)
	}
	return outcomes
}

// cursorOf returns the cursor of an outcome for waitFor. snap is the snapshot before the decision.
func (s *Service) cursorOf(snap *snapshot.Snapshot, o *Outcome) string {
	switch {
	case o.proposal == 0:
		return s.finder.LatestCursor(snap)
	case o.continues:
		return s.finder.EffectCursor(o.proposal)
	}
	return s.finder.ProposalCursor(o.proposal)
}

// failAll sets the error of all outcomes.
func failAll(outcomes []Outcome, err error) []Outcome {
	for i := range outcomes {
		outcomes[i].Err = err
	}
	return outcomes
}

// proposeDecision checks one decision against the snapshot, and writes it to the log as a proposal.
// Resolved interrupts are accepted here: the workflow and the log tell whether the decision repeats
// the one that stands. An unknown interrupt is a 404.
func (s *Service) proposeDecision(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot, target Target) (runs.Decision, error) {
	interrupt := interruptByID(slices.Concat(snap.Interrupts, snap.Answered), target.ID)
	if interrupt == nil {
		return runs.Decision{}, UnknownApproval(target.ID)
	}
	rule, err := s.authorize(ctx, thread, interrupt, "")
	if err != nil {
		return runs.Decision{}, err
	}
	req, err := target.Request.normalize(snap, interrupt, "")
	if err != nil {
		return runs.Decision{}, err
	}
	if err := s.checkDecision(ctx, rule, snap, interrupt, req, ""); err != nil {
		return runs.Decision{}, err
	}
	return s.writeProposal(ctx, stream.Run{Thread: thread, ID: snap.RunID}, interrupt, req, request.ChannelOf(ctx))
}

// sendDecisions sends proposed decisions to the thread's workflow, and returns their outcomes.
// targetIndexes has, for each decision, its index in targets. If no workflow runs, or it does not
// know the call, the thread has continued, and the log answers (outcomeFromLog). If the update
// fails, all outcomes are that error: it is unknown which decisions were taken.
func (s *Service) sendDecisions(ctx context.Context, thread stream.Thread, targets []Target, targetIndexes []int, decisions []runs.Decision) []Outcome {
	outcomes := make([]Outcome, len(decisions))
	decided, isInactive, err := s.updateWorkflow(ctx, thread, decisions)
	if err != nil {
		return failAll(outcomes, err)
	}
	read := map[uint64]*recordedDecision{} // several entries may be about the same decision, which may be large
	for n, d := range decisions {
		id := targets[targetIndexes[n]].ID
		if isInactive || decided.Results[n].Error == runs.ErrorUnknownCall {
			outcomes[n].DecisionReceipt, outcomes[n].Err = s.outcomeFromLog(ctx, thread, id, d)
			continue
		}
		result := decided.Results[n]
		outcomes[n].DecisionReceipt, outcomes[n].Err = s.outcome(ctx, id, d, result, read)
		outcomes[n].proposal, outcomes[n].continues = d.Proposal, result.Resolved
		if result.Recorded != nil { // the audit has that one
			outcomes[n].proposal = result.Recorded.Proposal
		}
	}
	return outcomes
}

// updateWorkflow sends decisions to the workflow of a thread; isInactive tells that none runs.
func (s *Service) updateWorkflow(ctx context.Context, thread stream.Thread, decisions []runs.Decision) (decided runs.DecideResult, isInactive bool, err error) {
	update := func(in runs.DecideRequest, out *runs.DecideResult) error {
		return s.commands.Update(ctx, thread, runs.UpdateDecide, in, out)
	}
	isOpen := func(d runs.Decision) (bool, error) {
		snap, err := s.finder.Snapshots.Latest(ctx, thread, 0)
		if err != nil {
			return false, err
		}
		interrupt := snap.OpenInterrupt(d.CallID, d.Question)
		if interrupt == nil {
			return false, nil
		}
		decision, err := s.findDecision(ctx, thread, snap, interrupt)
		return decision == nil && err == nil, err
	}
	decided, err = dispatch.Decide(decisions, update, isOpen)
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Code == commands.CodeNotActive {
		return decided, true, nil
	}
	return decided, false, err
}

// outcome converts the workflow's result for a decision. A recorded decision with the same effect
// makes the request a repetition; one with another effect, the problem of a conflict. read has the
// recorded decisions that were read, by proposal.
func (s *Service) outcome(ctx context.Context, id string, d runs.Decision, result runs.DecisionResult, read map[uint64]*recordedDecision) (DecisionReceipt, error) {
	receipt := DecisionReceipt{ID: id, Decision: string(d.Kind), Missing: result.Missing}
	for _, t := range result.Tallies {
		receipt.Tallies = append(receipt.Tallies, inbox.Tally{ArgsDigest: t.ArgsDigest, Decision: string(t.Kind), Votes: t.Votes, Missing: t.Missing})
	}
	if result.Recorded == nil {
		if result.Error != "" {
			return DecisionReceipt{}, UnknownApproval(id)
		}
		return receipt, nil
	}
	recorded := read[result.Recorded.Proposal]
	if recorded == nil || recorded.Proposal == 0 {
		var err error
		if recorded, err = s.readDecision(ctx, *result.Recorded); err != nil {
			return DecisionReceipt{}, err
		}
		read[result.Recorded.Proposal] = recorded
	}
	switch result.Error {
	case "":
	case runs.ErrorDecided:
		// The workflow compares digests, which contain the caller. To a client, an equal decision
		// of another approver is no conflict.
		same, err := s.hasSameEffect(ctx, d, recorded)
		if err != nil {
			return DecisionReceipt{}, err
		}
		if !same {
			return DecisionReceipt{}, errDecided(recorded.receiptFor(id))
		}
	case runs.ErrorExpired:
		return DecisionReceipt{}, errExpired(recorded.receiptFor(id))
	case runs.ErrorOtherEdit:
		return DecisionReceipt{}, errOtherEdit(recorded.receiptFor(id))
	default:
		return DecisionReceipt{}, UnknownApproval(id)
	}
	receipt.Repeated, receipt.Recorded = true, recorded.receiptFor(id)
	return receipt, nil
}

// hasSameEffect reports whether a decision has the same effect as a recorded one: its kind, and the
// arguments of an edit, the answer in any order of its members, or the reason of a rejection. The caller and the scope of
// remember make no difference.
func (s *Service) hasSameEffect(ctx context.Context, d runs.Decision, recorded *recordedDecision) (bool, error) {
	if d.Kind != recorded.Kind {
		return false, nil
	}
	switch d.Kind {
	case runs.DecisionApprove:
		return true, nil
	case runs.DecisionEdit:
		return d.ArgsDigest == recorded.ArgsDigest, nil
	}
	requested, err := s.readDecision(ctx, d)
	if err != nil {
		return false, err
	}
	return requested.reason == recorded.reason && runs.CanonicalDigest(string(requested.content)) == runs.CanonicalDigest(string(recorded.content)), nil
}

// outcomeFromLog returns the outcome of a decision from the log, because the thread has continued
// and its workflow does not know the interrupt. A decision that counted, as a vote or by its
// effect, is a repetition. Otherwise the problem names the decision that stands, or is a 404.
func (s *Service) outcomeFromLog(ctx context.Context, thread stream.Thread, id string, d runs.Decision) (DecisionReceipt, error) {
	snap, err := s.finder.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return DecisionReceipt{}, err
	}
	interrupt := interruptByID(slices.Concat(snap.Interrupts, snap.Answered), id)
	if interrupt == nil {
		return DecisionReceipt{}, UnknownApproval(id)
	}
	recorded, err := s.findDecision(ctx, thread, snap, interrupt)
	if err != nil {
		return DecisionReceipt{}, err
	}
	if recorded == nil {
		return DecisionReceipt{}, UnknownApproval(id)
	}
	// The caller's vote was counted, although another approver has completed the quorum.
	voted := slices.ContainsFunc(recorded.votes, func(digest string) bool { return digest == d.Digest })
	same, err := s.hasSameEffect(ctx, d, &recorded.recordedDecision)
	switch {
	case err != nil:
		return DecisionReceipt{}, err
	case voted, same:
		return DecisionReceipt{ID: id, Decision: string(d.Kind), Repeated: true, Recorded: recorded.receiptFor(id)}, nil
	case recorded.Kind == runs.DecisionExpire:
		return DecisionReceipt{}, errExpired(recorded.receiptFor(id))
	}
	return DecisionReceipt{}, errDecided(recorded.receiptFor(id))
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
		s.finder.Logger.WarnContext(ctx, "could not remove a resolved interrupt from the inbox", "thread", thread.ID, "approval", id, "error", err)
	}
}

// errDecided returns the 409 decided: another decision stands.
func errDecided(recorded *DecisionReceipt) *problem.Problem {
	detail := fmt.Sprintf("the approval %.100q is already decided: %s", recorded.ID, recorded.Decision)
	if recorded.By != "" {
		detail += " by " + recorded.By
	}
	p := problem.New(http.StatusConflict, "decided", detail)
	p.Recorded = recorded
	return p
}

// OtherEdit returns the 409 other_edit for an input whose resume has a vote that cannot be counted.
// vote is the other person's, and names the call.
func (s *Service) OtherEdit(ctx context.Context, snap *snapshot.Snapshot, resume []agui.ResumeEntry, vote runs.Decision) error {
	i := slices.IndexFunc(resume, func(e agui.ResumeEntry) bool {
		interrupt := interruptByID(snap.Interrupts, e.InterruptID)
		return interrupt != nil && stream.CallOf(*interrupt) == vote.CallID
	})
	if i < 0 {
		return fmt.Errorf("api: the input has no decision about the call %q", vote.CallID)
	}
	recorded, err := s.readDecision(ctx, vote)
	if err != nil {
		return err
	}
	p := errOtherEdit(recorded.receiptFor(resume[i].InterruptID))
	p.Pointer = fmt.Sprintf("/resume/%d/payload", i)
	return p
}

// errOtherEdit returns the 409 other_edit: an approver votes for an edit to other arguments, or for
// another answer.
func errOtherEdit(recorded *DecisionReceipt) *problem.Problem {
	detail := "another approver has voted for an edit with other arguments: vote for that edit or for the original arguments, or reject the call"
	if recorded.Decision == string(runs.DecisionAnswer) {
		detail = "another approver has given another answer: give the same one, or reject"
	}
	p := problem.New(http.StatusConflict, runs.ErrorOtherEdit, detail)
	p.Recorded = recorded
	return p
}

// errExpired returns the 410 expired: the interrupt expired before the decision.
func errExpired(recorded *DecisionReceipt) *problem.Problem {
	p := problem.New(http.StatusGone, "expired", fmt.Sprintf("the approval %.100q has expired", recorded.ID))
	p.Recorded = recorded
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
func (d *DecisionReceipt) Short() *DecisionReceipt {
	if len(d.Args) <= inbox.MaxArgs {
		return d
	}
	without := *d
	without.Args, without.Truncated = nil, true
	return &without
}
