package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/activities/narration"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// A tool may end its call with a question for the user (tools.Ask). The done record of the call
// then has the question, and what the call needs to be made again; the workflow knows the record's
// number. When the user has answered, the workflow schedules the call again with that number and
// the decision, as a new step. The tool runs from its beginning, and receives all answers so far.

// tooManyQuestions is the result of a call whose tool exceeds tools.MaxQuestions.
const tooManyQuestions = "The tool asked too many questions. The call was abandoned."

// inquiry has the earlier questions of a call and their answers. The zero value is that of a call
// that has not asked. It is not changed after readInquiry has returned it.
type inquiry struct {
	// lastQuestion is the question that the call ended with the last time; nil = none.
	lastQuestion *stream.ToolQuestion
	// replies are those to the call's earlier questions, and answers their content.
	replies []stream.Reply
	answers []tools.Answer
}

// readInquiry reads the earlier questions of a call, and their answers, from the log. The error is
// final if in.QuestionRecord is the question of another call or of other arguments, because the
// tool would take the answer for its own.
func (a *Activities) readInquiry(ctx context.Context, in runs.ToolCall, call agui.ToolCall) (*inquiry, error) {
	if in.QuestionRecord == 0 {
		return &inquiry{}, nil
	}
	lastQuestion, err := a.Log.ToolQuestion(ctx, in.QuestionRecord)
	if err != nil {
		return nil, err
	}
	if lastQuestion.CallID != call.ID || lastQuestion.Args != runs.DigestArgs(call.Arguments) || in.Decision == nil {
		return nil, temporal.NewNonRetryableApplicationError("the question belongs to another call", runs.CodeInternal, nil)
	}
	// append copies here, so lastQuestion keeps its own replies.
	q := &inquiry{lastQuestion: lastQuestion, replies: append(lastQuestion.Replies[:len(lastQuestion.Replies):len(lastQuestion.Replies)], stream.Reply{
		Question: lastQuestion.Digest, State: lastQuestion.State, Kind: string(in.Decision.Kind), Proposal: in.Decision.Proposal,
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

// idempotencyKey returns the idempotency key of the call. It stays the same when a later run makes
// the call again: the record of the question has the key of the first one.
func (q *inquiry) idempotencyKey(in runs.ToolCall, call agui.ToolCall) string {
	if q.lastQuestion != nil {
		return q.lastQuestion.Key
	}
	return in.Run.ID + "/" + call.ID
}

// questionCount returns how many questions the call has asked.
func (q *inquiry) questionCount() int {
	if q.lastQuestion == nil {
		return 0
	}
	return q.lastQuestion.Number
}

// endWithQuestion ends a call with a question: it writes the done record without a result, and
// returns OutcomeInterrupt with what the workflow needs to wait. Answers to questions before
// raised.Index stay valid, later ones are dropped: the tool has changed its questions.
func (q *inquiry) endWithQuestion(
	ctx context.Context, in runs.ToolCall, call agui.ToolCall, attempt *stream.Attempt, raised *tools.Raised, opened uint64,
) (runs.ToolAnswer, error) {
	question := &stream.ToolQuestion{
		CallID: call.ID, Tool: call.Name, Number: q.questionCount() + 1, Index: raised.Index, Args: runs.DigestArgs(call.Arguments), Key: q.idempotencyKey(in, call),
		Reason: raised.Reason, Message: raised.Message, ResponseSchema: raised.ResponseSchema, Digest: raised.Digest(), State: raised.State,
		Replies: q.replies[:min(raised.Index, len(q.replies))], Wait: waitOf(raised),
	}
	for name, value := range raised.Metadata {
		encodedValue, err := json.Marshal(value)
		if err != nil {
			return runs.ToolAnswer{}, fmt.Errorf("activities: encode metadata: %w", err)
		}
		if question.Metadata == nil {
			question.Metadata = agui.Metadata{}
		}
		question.Metadata[name] = encodedValue
	}
	answer := runs.ToolAnswer{Outcome: runs.OutcomeInterrupt, Opened: opened, Question: &runs.AskedQuestion{
		CallID: call.ID, Tool: call.Name, Number: question.Number, Expires: raised.ExpiresIn, ExpiresAt: raised.ExpiresAt.UTC(), Waits: question.Wait != nil,
	}}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return answer, fmt.Errorf("activities: encode answer: %w", err)
	}
	ctx, cancel := contextAfter(ctx)
	defer cancel()
	result := &stream.Result{
		Answer: encoded, Question: question, Decided: decisionRecord(in, call.Name, call.Arguments), Edited: editedArguments(in, call),
	}
	var events []agui.Event
	if in.IsHidden() {
		result.ShownCalls = []string{call.ID}
		if in.Decision == nil && in.QuestionRecord == 0 { // its first interrupt
			events = narration.ShowCall(call, in.MessageID)
		}
	}
	answer.Seq, err = attempt.Finish(ctx, result, events...)
	return answer, err
}

// questionInterrupt returns the AG-UI interrupt of a tool's question. Metadata of the tool is added
// to ours; package tools refuses our keys.
func (a *Activities) questionInterrupt(ctx context.Context, s *runs.Interrupts, c runs.Interrupt) (agui.Interrupt, error) {
	question, err := a.Log.ToolQuestion(ctx, c.Question.Seq)
	if err != nil {
		return agui.Interrupt{}, err
	}
	source := s.Source(c)
	encodedSource, err := json.Marshal(stream.QuestionSource{Agent: source.Agent, Revision: source.Revision, Tool: question.Tool, Number: question.Number, OpenedAt: c.Since(s.OpenedAt)})
	if err != nil {
		return agui.Interrupt{}, fmt.Errorf("activities: encode question: %w", err)
	}
	metadata := agui.Metadata{stream.MetadataQuestion: encodedSource}
	for name, value := range question.Metadata {
		metadata[name] = value
	}
	if question.Wait != nil {
		if metadata[stream.MetadataWait], err = json.Marshal(question.Wait); err != nil {
			return agui.Interrupt{}, fmt.Errorf("activities: encode wait: %w", err)
		}
	}
	return agui.Interrupt{Reason: question.Reason, Message: question.Message, ResponseSchema: question.ResponseSchema, Metadata: metadata}, nil
}
