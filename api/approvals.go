package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// decided is the answer to a decision: what became of it, or which decision stands.
type decided struct {
	ID       string `json:"id"`
	Decision string `json:"decision"`
	// Repeated tells that the same decision was made before. Recorded is that decision.
	Repeated bool     `json:"repeated,omitempty"`
	Recorded *decided `json:"recorded,omitempty"`
	// Missing is how many more approvers have to vote for the same arguments. Proposals counts the votes for each proposal.
	Missing   int              `json:"missing,omitempty"`
	Proposals []inbox.Proposal `json:"proposals,omitempty"`
	// By and At are set in a recorded decision: the subject that decided, and when. Args are those of an edit; Truncated tells that they
	// are left out.
	By        string          `json:"by,omitempty"`
	At        time.Time       `json:"at,omitzero"`
	Args      json.RawMessage `json:"args,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	// Cursor is for waitFor: a reader that passes it on sees the effect of the decision.
	Cursor string `json:"cursor,omitempty"`
}

// decideApproval decides about a tool call. It answers when the run has taken the decision. The same decision again is taken once; another
// one is refused with the one that stands.
func (s *Server) decideApproval(c *gin.Context) {
	thread, err := request.ThreadOf(c)
	var v verdict
	if err == nil {
		err = s.ReadJSON(c, &v)
	}
	if err == nil {
		err = v.check("")
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(request.WithChannel(c.Request.Context(), request.ChannelIn(c, request.ChannelHTTP)), request.Patience)
	defer cancel()
	answer, err := s.decide(ctx, thread, request.Segment(c, "approval"), v)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, answer)
}

// asked is a requested decision.
type asked struct {
	id string
	v  verdict
}

// judged is what became of it: a decision that stands, or why it does not.
type judged struct {
	decided
	// proposal is the record of the decision, if the thread continues with it; 0 = the log shows no effect yet.
	proposal uint64
	err      error
}

// decide decides about one call of a thread.
func (s *Server) decide(ctx context.Context, thread stream.Thread, id string, v verdict) (decided, error) {
	answer := s.decideAll(ctx, thread, []asked{{id, v}})[0]
	return answer.decided, answer.err
}

// decideAll decides about calls of one thread, as many as fit into one update at a time, and answers in their order. An interrupt that turns
// out to be resolved is removed from the inbox.
func (s *Server) decideAll(ctx context.Context, thread stream.Thread, all []asked) []judged {
	answers := make([]judged, 0, len(all))
	for some := range slices.Chunk(all, runs.MaxInterrupts) {
		answers = append(answers, s.decideSome(ctx, thread, some)...)
	}
	return answers
}

func (s *Server) decideSome(ctx context.Context, thread stream.Thread, all []asked) []judged {
	answers := make([]judged, len(all))
	now, err := s.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return failAll(answers, err)
	}
	var decisions []runs.Decision
	var of []int // their places
	for i, a := range all {
		d, err := s.proposeAnswer(ctx, thread, now, a)
		if err != nil {
			answers[i].err = err
			continue
		}
		decisions, of = append(decisions, d), append(of, i)
	}
	if len(decisions) > 0 {
		for n, answer := range s.take(ctx, thread, all, of, decisions) {
			answers[of[n]] = answer
		}
	}
	for i, a := range all {
		if answer := &answers[i]; answer.err == nil {
			answer.Cursor = s.find.EffectCursor(now, answer.proposal)
		}
		s.forget(ctx, thread, now, a.id, answers[i].err)
	}
	return answers
}

func failAll(answers []judged, err error) []judged {
	for i := range answers {
		answers[i].err = err
	}
	return answers
}

// proposeAnswer writes a decision about an interrupt to the log.
func (s *Server) proposeAnswer(ctx context.Context, thread stream.Thread, now *snapshot.Snapshot, a asked) (runs.Decision, error) {
	question := questionOf(slices.Concat(now.Interrupts, now.Answered), a.id)
	if question == nil {
		return runs.Decision{}, errNoApproval(a.id)
	}
	v, err := a.v.normalized(now, question, "")
	if err == nil {
		err = s.mayDecide(ctx, thread, now, question, v, "")
	}
	if err != nil {
		return runs.Decision{}, err
	}
	return s.propose(ctx, stream.Run{Thread: thread, ID: now.RunID}, question, v, request.ChannelOf(ctx))
}

// take has the thread's workflow take decisions; of are their indices in the request.
func (s *Server) take(ctx context.Context, thread stream.Thread, all []asked, of []int, decisions []runs.Decision) []judged {
	answers := make([]judged, len(decisions))
	var taken runs.Decided
	err := s.commands.Update(ctx, thread, runs.UpdateDecide, runs.Decide{Decisions: decisions}, &taken)
	var p *problem.Problem
	gone := errors.As(err, &p) && p.Code == commands.CodeNotActive
	if err != nil && !gone {
		return failAll(answers, err)
	}
	for n, d := range decisions {
		id := all[of[n]].id
		if gone || taken.Results[n].Error == runs.ErrorUnknownCall {
			answers[n].decided, answers[n].err = s.decidedBefore(ctx, thread, id, d)
			continue
		}
		answers[n].decided, answers[n].err = s.outcome(ctx, id, d, taken.Results[n])
		if taken.Results[n].Settled {
			answers[n].proposal = d.Input
		}
	}
	return answers
}

// outcome is what the workflow made of a decision.
func (s *Server) outcome(ctx context.Context, id string, d runs.Decision, r runs.DecisionResult) (decided, error) {
	answer := decided{ID: id, Decision: string(d.Kind), Missing: r.Missing, Proposals: proposals(r.Proposals)}
	if r.Recorded == nil {
		if r.Error != "" {
			return decided{}, errNoApproval(id)
		}
		return answer, nil
	}
	before, err := s.standing(ctx, *r.Recorded)
	if err != nil {
		return decided{}, err
	}
	switch r.Error {
	case "":
	case runs.ErrorDecided:
		same, err := s.says(ctx, d, before)
		if err != nil {
			return decided{}, err
		}
		if !same {
			return decided{}, errDecided(before.as(id))
		}
	case runs.ErrorExpired:
		return decided{}, errTooLate(before.as(id))
	case runs.ErrorOtherEdit:
		p := problem.New(http.StatusConflict, runs.ErrorOtherEdit, "there are votes for an edit to other arguments: vote for that one or for the original arguments, or reject the call")
		p.Recorded = before.as(id)
		return decided{}, p
	default:
		return decided{}, errNoApproval(id)
	}
	answer.Repeated, answer.Recorded = true, before.as(id)
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

// standing is a recorded decision, with its content.
type standing struct {
	runs.Decision
	by     string
	at     time.Time
	args   json.RawMessage
	reason string
	// content is the answer in JSON; nil = none, or unknown.
	content json.RawMessage
}

func (d *standing) as(id string) *decided {
	return &decided{ID: id, Decision: string(d.Kind), By: d.by, At: d.at.UTC(), Args: d.args, Reason: d.reason}
}

// standing reads the content of a recorded decision from the log. A decision by time, or by the end of a run, has none.
func (s *Server) standing(ctx context.Context, d runs.Decision) (*standing, error) {
	if d.Input == 0 {
		return &standing{Decision: d}, nil
	}
	said, at, err := s.Log.DecisionSaid(ctx, d.Input)
	if err != nil {
		return nil, err
	}
	before := &standing{Decision: d, at: at, args: said.Args, reason: said.Reason}
	if before.content, err = contentOf(said); err != nil {
		return nil, err
	}
	if said.By != nil {
		before.by = said.By.Subject
	}
	return before, nil
}

// contentOf is the answer of a decision, in JSON; nil = none.
func contentOf(said *stream.Decision) (json.RawMessage, error) {
	if said.Result == nil {
		return said.Content, nil
	}
	text, err := json.Marshal(said.Result.Content.Text())
	if err != nil {
		return nil, fmt.Errorf("api: encode answer: %w", err)
	}
	return text, nil
}

// says reports whether a decision has the effect of a recorded one: its kind, and the arguments of an edit, the answer, or the reason of a
// rejection. The caller and the scope make no difference.
func (s *Server) says(ctx context.Context, d runs.Decision, before *standing) (bool, error) {
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
func (s *Server) decidedBefore(ctx context.Context, thread stream.Thread, id string, d runs.Decision) (decided, error) {
	now, err := s.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return decided{}, err
	}
	question := questionOf(slices.Concat(now.Interrupts, now.Answered), id)
	if question == nil {
		return decided{}, errNoApproval(id)
	}
	before, err := s.became(ctx, thread, now, question)
	if err != nil {
		return decided{}, err
	}
	if before == nil {
		return decided{}, errNoApproval(id)
	}
	voted := slices.ContainsFunc(before.votes, func(digest string) bool { return digest == d.Digest })
	same, err := s.says(ctx, d, &before.standing)
	switch {
	case err != nil:
		return decided{}, err
	case voted, same:
		return decided{ID: id, Decision: string(d.Kind), Repeated: true, Recorded: before.as(id)}, nil
	case before.Kind == runs.DecisionExpire:
		return decided{}, errTooLate(before.as(id))
	}
	return decided{}, errDecided(before.as(id))
}

// errDecided refuses a decision, because another one stands.
func errDecided(stands *decided) *problem.Problem {
	detail := fmt.Sprintf("the approval %.100q is decided: %s", stands.ID, stands.Decision)
	if stands.By != "" {
		detail += " by " + stands.By
	}
	p := problem.New(http.StatusConflict, "decided", detail)
	p.Recorded = stands
	return p
}

func errTooLate(stands *decided) *problem.Problem {
	p := problem.New(http.StatusGone, "expired", fmt.Sprintf("the time to decide about %.100q is over", stands.ID))
	p.Recorded = stands
	return p
}

// codeUnknownApproval is the code of the problem that there is no such interrupt.
const codeUnknownApproval = "unknown_approval"

func errNoApproval(id string) *problem.Problem {
	return problem.New(http.StatusNotFound, codeUnknownApproval, fmt.Sprintf("the thread does not wait for a decision about %.100q", id))
}
