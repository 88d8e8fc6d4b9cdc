package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// A tool may end its call with a question for people (tools.Ask). The done record of the call then
// has the question, and what the call needs to be made again; the workflow knows the record's
// number. When people have answered, the workflow schedules the call again with that number and the
// decision, as a new step. The tool runs from its beginning, and receives all answers so far.

// tooManyQuestions is the result of a call whose tool exceeds tools.MaxQuestions.
const tooManyQuestions = "The tool asked too many questions. The call was abandoned."

// inquiry has the earlier questions of a call and their answers. The zero value is that of a call
// that has not asked. It is not changed after inquiry has returned it.
type inquiry struct {
	// before is the question that the call ended with the last time; nil = none.
	before *stream.ToolQuestion
	// replies are those to the call's earlier questions, and answers their content.
	replies []stream.Reply
	answers []tools.Answer
}

// inquiry reads the earlier questions of a call, and their answers, from the log. The error is
// final if in.Question is the question of another call or of other arguments, because the tool
// would take the answer for its own.
func (a *Activities) inquiry(ctx context.Context, in runs.ToolCall, call agui.ToolCall) (*inquiry, error) {
	if in.QuestionRecord == 0 {
		return &inquiry{}, nil
	}
	before, err := a.Log.ToolQuestion(ctx, in.QuestionRecord)
	if err != nil {
		return nil, err
	}
	if before.CallID != call.ID || before.Args != runs.DigestArgs(call.Arguments) || in.Decision == nil {
		return nil, temporal.NewNonRetryableApplicationError("the question belongs to another call", runs.CodeInternal, nil)
	}
	// append copies here, so before keeps its own replies.
	q := &inquiry{before: before, replies: append(before.Replies[:len(before.Replies):len(before.Replies)], stream.Reply{
		Question: before.Digest, State: before.State, Kind: string(in.Decision.Kind), Proposal: in.Decision.Input,
	})}
	for _, r := range q.replies {
		answer, err := a.replyContent(ctx, r)
		if err != nil {
			return nil, err
		}
		q.answers = append(q.answers, answer)
	}
	return q, nil
}

// replyContent returns a reply as the tool receives it: the answer, or why there is none.
func (a *Activities) replyContent(ctx context.Context, r stream.Reply) (tools.Answer, error) {
	content := &stream.Decision{}
	if r.Proposal > 0 {
		var err error
		if content, err = a.Log.Decision(ctx, r.Proposal); err != nil {
			return tools.Answer{}, err
		}
	}
	// Cancelled covers all other kinds: nobody is going to answer.
	answer := tools.Answer{Question: r.Question, State: r.State, Status: tools.Cancelled}
	switch runs.DecisionKind(r.Kind) {
	case runs.DecisionAnswer:
		answer.Status, answer.Content = tools.Answered, content.Content
	case runs.DecisionReject:
		answer.Status, answer.Words = tools.Declined, content.Reason
	case runs.DecisionExpire:
		answer.Status = tools.Expired
	}
	return answer, nil
}

// key returns the idempotency key of the call. It stays the same when a later run makes the call
// again: the record of the question has the key of the first one.
func (q *inquiry) key(in runs.ToolCall, call agui.ToolCall) string {
	if q.before != nil {
		return q.before.Key
	}
	return in.Run.ID + "/" + call.ID
}

// number returns how many questions the call has asked.
func (q *inquiry) number() int {
	if q.before == nil {
		return 0
	}
	return q.before.Number
}

// raise ends a call with a question: it writes the done record without a result, and returns
// OutcomeInterrupt with what the workflow needs to wait. Answers to questions before asks.Index
// stay valid, later ones are dropped: the tool has changed its questions.
func (q *inquiry) raise(ctx context.Context, in runs.ToolCall, call agui.ToolCall, attempt *stream.Attempt, asks *tools.Raised, opened uint64) (runs.ToolAnswer, error) {
	raised := &stream.ToolQuestion{
		CallID: call.ID, Tool: call.Name, Number: q.number() + 1, Index: asks.Index, Args: runs.DigestArgs(call.Arguments), Key: q.key(in, call),
		Reason: asks.Reason, Message: asks.Message, ResponseSchema: asks.ResponseSchema, Digest: asks.Digest(), State: asks.State,
		Replies: q.replies[:min(asks.Index, len(q.replies))],
	}
	for name, value := range asks.Metadata {
		encoded, err := json.Marshal(value)
		if err != nil {
			return runs.ToolAnswer{}, fmt.Errorf("activities: encode metadata: %w", err)
		}
		if raised.Metadata == nil {
			raised.Metadata = agui.Metadata{}
		}
		raised.Metadata[name] = encoded
	}
	answer := runs.ToolAnswer{Outcome: runs.OutcomeInterrupt, Opened: opened, Question: &runs.AskedQuestion{
		CallID: call.ID, Tool: call.Name, Number: raised.Number, Expires: asks.ExpiresIn,
	}}
	recorded, err := json.Marshal(answer)
	if err != nil {
		return answer, fmt.Errorf("activities: encode answer: %w", err)
	}
	ctx, cancel := contextAfter(ctx)
	defer cancel()
	answer.Seq, err = attempt.Finish(ctx, &stream.Result{Answer: recorded, Question: raised, Decided: decisionRecord(in, call.Name, call.Arguments), Edited: editedArguments(in, call)})
	return answer, err
}

// raisedInterrupt returns the AG-UI interrupt of a tool's question. Metadata of the tool is added
// to ours; package tools refuses our keys.
func (a *Activities) raisedInterrupt(ctx context.Context, s *runs.Interrupts, c runs.Interrupt) (agui.Interrupt, error) {
	raised, err := a.Log.ToolQuestion(ctx, c.Question.Seq)
	if err != nil {
		return agui.Interrupt{}, err
	}
	by := s.Source(c)
	about, err := json.Marshal(stream.QuestionSource{Agent: by.Agent, Revision: by.Revision, Tool: raised.Tool, Number: raised.Number, AskedAt: c.Since(s.Opened)})
	if err != nil {
		return agui.Interrupt{}, fmt.Errorf("activities: encode question: %w", err)
	}
	metadata := agui.Metadata{stream.MetadataQuestion: about}
	for name, value := range raised.Metadata {
		metadata[name] = value
	}
	return agui.Interrupt{Reason: raised.Reason, Message: raised.Message, ResponseSchema: raised.ResponseSchema, Metadata: metadata}, nil
}
