package decisions

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// A thread whose last run ended with interrupts waits for answers. They come with the next input,
// in resume, or one by one. The API checks what needs no workflow, and writes the answers to the
// log. The workflow decides.

// Resume returns the decisions of an input about what the thread waits for: entries of resume, and
// results of client tools. It checks the decisions, and writes them to the log.
func (s *Service) Resume(ctx context.Context, input *agui.RunAgentInput, of stream.Thread, thread *snapshot.Snapshot) ([]runs.Decision, []stream.LateAnswer, error) {
	if !thread.Sealed || len(thread.Interrupts)+len(thread.ClientCalls) == 0 {
		return nil, nil, nil
	}
	asked := stream.Run{Thread: of, ID: thread.RunID}
	answers, unknown, err := s.answers(ctx, input.Resume, of, thread)
	if err != nil {
		return nil, nil, err
	}
	var decisions []runs.Decision
	var told []stream.LateAnswer
	for _, a := range answers {
		d, err := s.propose(ctx, asked, a.question, a.request, request.ChannelInput)
		if err != nil {
			return nil, nil, err
		}
		decisions, told = append(decisions, d), append(told, answerOf(a.question, a.request))
	}
	if unknown > 0 {
		s.find.Logger.WarnContext(ctx, "the input answers unknown interrupts, which are ignored", "count", unknown)
	}
	return append(decisions, results(input.Messages, thread)...), told, nil
}

// answer is an entry of resume.
type answer struct {
	question *agui.Interrupt
	request  Request
}

// answers reads the entries of resume, and refuses all if one is invalid. Entries about unknown
// interrupts are only counted.
func (s *Service) answers(ctx context.Context, resume []agui.ResumeEntry, t stream.Thread, thread *snapshot.Snapshot) (answers []answer, unknown int, err error) {
	answered := map[string]bool{}
	for i, entry := range resume {
		at := fmt.Sprintf("/resume/%d", i)
		question := questionOf(thread.Interrupts, entry.InterruptID)
		if question == nil {
			unknown++
			continue
		}
		if answered[question.ID] {
			return nil, 0, InvalidAnswer(at+"/interruptId", "is answered twice")
		}
		answered[question.ID] = true
		v, err := requestOf(question, entry, at)
		if err == nil {
			v, err = v.normalized(thread, question, at+"/payload")
		}
		if err == nil {
			err = s.mayDecide(ctx, t, thread, question, v, at+"/payload")
		}
		if err != nil {
			return nil, 0, err
		}
		answers = append(answers, answer{question, v})
	}
	return answers, unknown, nil
}

// results returns those of client tools for calls that the thread waits for, one for each.
func results(messages []agui.Message, thread *snapshot.Snapshot) []runs.Decision {
	open := map[string]bool{}
	if at := lastCalls(thread); at >= 0 {
		for _, c := range thread.Entries[at].Message.ToolCalls {
			open[c.ID] = true
		}
	}
	var decisions []runs.Decision
	for _, m := range messages {
		if m.Role != agui.RoleTool || !open[m.ToolCallID] || hasInterrupt(thread, m.ID) {
			continue
		}
		delete(open, m.ToolCallID)
		decisions = append(decisions, runs.Decision{CallID: m.ToolCallID, Kind: runs.DecisionToolResult, Digest: stream.ResultDigest(&m)})
	}
	return decisions
}

// decisionOf returns a request as the log has it.
func decisionOf(question *agui.Interrupt, v Request) (*stream.Decision, error) {
	by, err := stream.QuestionSourceOf(*question)
	if err != nil {
		return nil, err
	}
	d := &stream.Decision{CallID: question.ToolCallID, Kind: v.Decision, Question: by.Number, Reason: v.Reason, Remember: string(v.Remember)}
	var b bytes.Buffer
	switch {
	case v.Decision == string(runs.DecisionEdit):
		if err := json.Compact(&b, v.Args); err != nil {
			return nil, fmt.Errorf("api: arguments: %w", err)
		}
		d.Args = b.Bytes()
	case v.Decision == string(runs.DecisionAnswer) && by.Number > 0:
		if err := json.Compact(&b, v.Content); err != nil {
			return nil, fmt.Errorf("api: content: %w", err)
		}
		d.Content = b.Bytes()
	case v.Decision == string(runs.DecisionAnswer):
		var text string
		if err := json.Unmarshal(v.Content, &text); err != nil {
			return nil, fmt.Errorf("api: content: %w", err)
		}
		d.Result = &agui.Message{ID: d.CallID, Role: agui.RoleTool, ToolCallID: d.CallID, Content: agui.TextContent(text)}
	}
	return d, nil
}

// propose writes the caller's decision about an interrupt to the log.
func (s *Service) propose(ctx context.Context, run stream.Run, question *agui.Interrupt, v Request, channel string) (runs.Decision, error) {
	said, err := decisionOf(question, v)
	if err != nil {
		return runs.Decision{}, err
	}
	d := runs.Decision{CallID: said.CallID, Kind: runs.DecisionKind(v.Decision), Question: said.Question, By: voter(request.Caller(ctx)), Remember: runs.RememberScope(v.Remember), Allowed: v.allowed}
	if len(said.Args) > 0 {
		d.Args = runs.DigestArgs(string(said.Args))
	}
	digest, err := digestOf(ctx, said)
	if err != nil {
		return d, err
	}
	said.By, said.Channel = request.Requester(ctx), channel
	p, err := s.find.Log.ProposeDecision(ctx, run, digest, said)
	d.Input, d.Digest = p.Seq, p.Digest[:min(len(p.Digest), maxDecisionDigest)]
	return d, err
}

// LateAnswers returns the entries of resume about interrupts that were decided before. An invalid
// one has no content.
func LateAnswers(resume []agui.ResumeEntry, thread *snapshot.Snapshot) []stream.LateAnswer {
	var late []stream.LateAnswer
	for _, entry := range resume {
		question := questionOf(thread.Answered, entry.InterruptID)
		if question == nil {
			continue
		}
		answer := stream.LateAnswer{InterruptID: question.ID}
		v, err := requestOf(question, entry, "")
		if err == nil {
			v, err = v.normalized(thread, question, "")
		}
		if err == nil {
			answer = answerOf(question, v)
		}
		late = append(late, answer)
	}
	return late
}

// answerOf returns the answer to an interrupt.
func answerOf(question *agui.Interrupt, v Request) stream.LateAnswer {
	answer := stream.LateAnswer{InterruptID: question.ID}
	if d, err := decisionOf(question, v); err == nil {
		answer.Said = *d
	}
	return answer
}

// maxDecisionDigest is how many characters of a digest the workflow is told: enough to tell
// decisions apart.
const maxDecisionDigest = 32

// digestOf identifies a decision. The same decision of the same person is one, over whatever
// channel and with whatever roles; those of two persons are two.
func digestOf(ctx context.Context, said *stream.Decision) ([sha256.Size]byte, error) {
	compared := *said
	if by, ok := auth.From(ctx); ok {
		compared.By = &auth.Principal{Tenant: by.Tenant, Subject: by.Subject}
	}
	body, err := json.Marshal(compared)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("api: encode decision: %w", err)
	}
	return sha256.Sum256(body), nil
}

// WithoutAnswers leaves out the tool messages that some clients send next to an answer: they repeat
// the answer, and are not the call's result. Unless the input replaces the conversation, it also
// leaves out results of calls that have another result by now.
func WithoutAnswers(messages []agui.Message, thread *snapshot.Snapshot, history snapshot.History) []agui.Message {
	asked := slices.Concat(thread.Interrupts, thread.Answered)
	return slices.DeleteFunc(slices.Clone(messages), func(m agui.Message) bool {
		if m.Role != agui.RoleTool || hasInterrupt(thread, m.ID) {
			return false
		}
		return history != snapshot.HistoryReplace && answersTwice(m, thread) ||
			slices.ContainsFunc(asked, func(q agui.Interrupt) bool { return q.ToolCallID == m.ToolCallID })
	})
}

// answersTwice reports whether a message is a result of a call that has one.
func answersTwice(m agui.Message, thread *snapshot.Snapshot) bool {
	if m.Role != agui.RoleTool || hasInterrupt(thread, m.ID) {
		return false
	}
	e := resultOf(thread, m.ToolCallID)
	return e != nil && e.Sent == ""
}

// AnswersLate reports whether an input answers only what was decided before. Its run shows what was
// decided.
func AnswersLate(in *agui.RunAgentInput, thread *snapshot.Snapshot) bool {
	if len(in.Resume) > 0 {
		return !slices.ContainsFunc(in.Resume, func(entry agui.ResumeEntry) bool {
			return !slices.ContainsFunc(thread.Answered, func(q agui.Interrupt) bool { return q.ID == entry.InterruptID })
		})
	}
	twice := func(m agui.Message) bool { return answersTwice(m, thread) }
	return slices.ContainsFunc(in.Messages, twice) &&
		!slices.ContainsFunc(in.Messages, func(m agui.Message) bool { return !hasInterrupt(thread, m.ID) && !twice(m) })
}

// Requester returns the requester of a run. An input that only answers interrupts continues the
// work of the run before it, so its requester stays: an approver does not become the one who asked.
func (s *Service) Requester(ctx context.Context, thread *snapshot.Snapshot, answers bool) (*auth.Principal, error) {
	if !answers || thread.Input == 0 {
		return request.Requester(ctx), nil
	}
	before, err := s.find.Log.Input(ctx, thread.Input)
	if err != nil {
		return nil, err
	}
	return before.Requester, nil
}
