package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

// decided tells which decision about a call stands.
type decided struct {
	ID       string `json:"id"`
	Decision string `json:"decision"`
	Repeated bool   `json:"repeated,omitempty"`
	// Missing is how many more people have to approve.
	Missing int `json:"missing,omitempty"`
	// Args are the arguments that others have approved instead of the model's.
	Args json.RawMessage `json:"args,omitempty"`
}

// decideApproval decides about a tool call that waits for it. The answer comes when the run has taken
// the decision; the same one again is taken once, and another one is told which stands.
func (s *Server) decideApproval(c *gin.Context) {
	thread, err := threadOf(c)
	var v verdict
	if err == nil {
		err = s.readJSON(c, &v)
	}
	if err == nil {
		err = v.check("")
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), patience)
	defer cancel()
	answer, err := s.decide(ctx, thread, segment(c, "approval"), v)
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, answer)
}

// asked is a decision about an approval, as somebody asks for it.
type asked struct {
	id string
	v  verdict
}

// judged is what became of it: a decision that stands, or why it does not.
type judged struct {
	decided
	err error
}

// decide decides about one call of a thread.
func (s *Server) decide(ctx context.Context, thread stream.Thread, id string, v verdict) (decided, error) {
	answer := s.decideAll(ctx, thread, []asked{{id, v}})[0]
	return answer.decided, answer.err
}

// decideAll decides about calls of one thread, as many as fit in one update at a time, and answers in their
// order. What turns out not to wait any more is not listed any longer.
func (s *Server) decideAll(ctx context.Context, thread stream.Thread, all []asked) []judged {
	answers := make([]judged, 0, len(all))
	for some := range slices.Chunk(all, workflows.MaxWaits) {
		answers = append(answers, s.decideSome(ctx, thread, some)...)
	}
	return answers
}

func (s *Server) decideSome(ctx context.Context, thread stream.Thread, all []asked) []judged {
	answers := make([]judged, len(all))
	now, err := s.Log.Reduce(ctx, thread, 0)
	if err != nil {
		return failAll(answers, err)
	}
	var decisions []workflows.Decision
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

// proposeAnswer writes down what somebody says about a question that was asked.
func (s *Server) proposeAnswer(ctx context.Context, thread stream.Thread, now *stream.Reduction, a asked) (workflows.Decision, error) {
	question := questionOf(slices.Concat(now.Interrupts, now.Answered), a.id)
	if question == nil {
		return workflows.Decision{}, errNoApproval()
	}
	v, err := a.v.aboutLimit(now, question, "")
	if err == nil {
		err = s.mayDecide(ctx, thread, now, question, v, "")
	}
	if err != nil {
		return workflows.Decision{}, err
	}
	return s.propose(ctx, stream.Run{Thread: thread, ID: now.RunID}, question, v, channelOf(ctx))
}

// take has the thread's workflow take decisions; of are their places among what was asked for.
func (s *Server) take(ctx context.Context, thread stream.Thread, all []asked, of []int, decisions []workflows.Decision) []judged {
	answers := make([]judged, len(decisions))
	var taken workflows.Decided
	err := s.update(ctx, thread, workflows.UpdateDecide, workflows.Decide{Decisions: decisions}, &taken)
	var p *Problem
	gone := errors.As(err, &p) && p.Code == errNotActive().Code
	if err != nil && !gone {
		return failAll(answers, err)
	}
	for n, d := range decisions {
		id := all[of[n]].id
		if gone || taken.Results[n].Error == workflows.ErrorUnknownCall {
			answers[n].decided, answers[n].err = s.decidedBefore(ctx, thread, id, d)
			continue
		}
		if r := taken.Results[n]; r.Error == workflows.ErrorOtherEdit {
			answers[n].err = s.otherEdit(ctx, id, r.Recorded)
			continue
		}
		answers[n].decided, answers[n].err = outcomeOf(id, d, taken.Results[n])
	}
	return answers
}

// otherEdit refuses an edit while people approve of another one, and says which that is.
func (s *Server) otherEdit(ctx context.Context, id string, stands *workflows.Decision) error {
	said, err := s.Log.Decision(ctx, stands.Input)
	if err != nil {
		return err
	}
	p := problem(http.StatusConflict, workflows.ErrorOtherEdit, "others have approved of other arguments: approve of these, of the model's, or reject the call")
	p.Recorded = &decided{ID: id, Decision: string(stands.Verdict), Args: said.Args}
	return p
}

// decidedBefore answers from the log, where the thread has gone on from what was decided.
func (s *Server) decidedBefore(ctx context.Context, thread stream.Thread, id string, d workflows.Decision) (decided, error) {
	now, err := s.Log.Reduce(ctx, thread, 0)
	if err != nil {
		return decided{}, err
	}
	question := questionOf(slices.Concat(now.Interrupts, now.Answered), id)
	if question == nil {
		return decided{}, errNoApproval()
	}
	before, err := s.became(ctx, thread, now, question)
	if err != nil {
		return decided{}, err
	}
	if before == nil {
		return decided{}, errNoApproval()
	}
	r := workflows.DecisionResult{Recorded: &workflows.Decision{CallID: d.CallID, Verdict: workflows.Verdict(before.Verdict), Digest: before.Digest}}
	switch {
	case slices.ContainsFunc(before.Votes, func(v stream.Vote) bool { return v.Digest == d.Digest }):
	case before.Verdict == string(workflows.VerdictExpire):
		r.Error = workflows.ErrorExpired
	case before.Digest != d.Digest || before.Verdict != string(d.Verdict):
		r.Error = workflows.ErrorDecided
	}
	return outcomeOf(id, d, r)
}

// outcomeOf tells what the workflow made of a decision.
func outcomeOf(id string, d workflows.Decision, r workflows.DecisionResult) (decided, error) {
	var stands any
	if r.Recorded != nil {
		stands = &decided{ID: id, Decision: string(r.Recorded.Verdict)}
	}
	switch r.Error {
	case "":
		return decided{ID: id, Decision: string(d.Verdict), Repeated: r.Recorded != nil, Missing: r.Missing}, nil
	case workflows.ErrorDecided:
		return decided{}, errDecided("it was decided otherwise", stands)
	case workflows.ErrorExpired:
		return decided{}, errTooLate(stands)
	}
	return decided{}, errNoApproval()
}

func errDecided(detail string, stands any) *Problem {
	p := problem(http.StatusConflict, "decided", detail)
	p.Recorded = stands
	return p
}

func errTooLate(stands any) *Problem {
	p := problem(http.StatusGone, "expired", "the time to decide is over")
	p.Recorded = stands
	return p
}

func errNoApproval() *Problem {
	return problem(http.StatusNotFound, "unknown_approval", "the thread waits for no such decision")
}
