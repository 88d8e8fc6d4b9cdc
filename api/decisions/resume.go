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

// A thread whose last run ended with interrupts waits for decisions. They arrive with the next
// input, as entries of resume and as tool messages, or one by one (decision.go). This file reads
// those of an input. The API checks what needs no workflow, and writes the decisions to the log;
// the workflow decides which of them count.

// Resume returns the decisions of an input about what the thread waits for: its entries of resume,
// and the results of client tools in its messages. The former it checks and proposes to the log;
// the second result has their contents. It returns nothing if the thread's last run is active or
// waits for nothing.
//
// An invalid entry, or one that the caller may not make, refuses the whole input, before anything
// is written. Entries about unknown interrupts are ignored, with a warning in the log.
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
		d, err := s.writeProposal(ctx, asked, a.question, a.request, request.ChannelInput)
		if err != nil {
			return nil, nil, err
		}
		decisions, told = append(decisions, d), append(told, answerOf(a.question, a.request))
	}
	if unknown > 0 {
		s.find.Logger.WarnContext(ctx, "the input resolves unknown interrupts, which are ignored", "count", unknown)
	}
	return append(decisions, results(input.Messages, thread)...), told, nil
}

// answer is a valid entry of resume, with its open interrupt.
type answer struct {
	question *agui.Interrupt
	request  Request
}

// answers converts and checks the entries of resume, and returns those about open interrupts. One
// invalid entry, or two about the same interrupt, is an error. unknown counts entries about
// interrupts that are not open.
func (s *Service) answers(ctx context.Context, resume []agui.ResumeEntry, t stream.Thread, thread *snapshot.Snapshot) (answers []answer, unknown int, err error) {
	answered := map[string]bool{}
	for i, entry := range resume {
		at := fmt.Sprintf("/resume/%d", i)
		interrupt := interruptByID(thread.Interrupts, entry.InterruptID)
		if interrupt == nil {
			unknown++
			continue
		}
		if answered[interrupt.ID] {
			return nil, 0, InvalidAnswer(at+"/interruptId", "is answered twice")
		}
		answered[interrupt.ID] = true
		v, err := requestOf(interrupt, entry, at)
		if err == nil {
			v, err = v.normalized(thread, interrupt, at+"/payload")
		}
		if err == nil {
			err = s.mayDecide(ctx, t, thread, interrupt, v, at+"/payload")
		}
		if err != nil {
			return nil, 0, err
		}
		answers = append(answers, answer{interrupt, v})
	}
	return answers, unknown, nil
}

// results returns a decision for each client tool result in the messages: the first new tool
// message for each call of the last message with calls. The workflow ignores results that the
// thread does not wait for. The contents stay in the input, so the decisions have no proposal.
func results(messages []agui.Message, thread *snapshot.Snapshot) []runs.Decision {
	open := map[string]bool{}
	if at := lastCalls(thread); at >= 0 {
		for _, c := range thread.Entries[at].Message.ToolCalls {
			open[c.ID] = true
		}
	}
	var decisions []runs.Decision
	for _, m := range messages {
		if m.Role != agui.RoleTool || !open[m.ToolCallID] || hasMessage(thread, m.ID) {
			continue
		}
		delete(open, m.ToolCallID)
		decisions = append(decisions, runs.Decision{CallID: m.ToolCallID, Kind: runs.DecisionToolResult, Digest: stream.ResultDigest(&m)})
	}
	return decisions
}

// decisionOf converts a request to the form of the log. Arguments and answers are compacted, so
// that white space makes no other decision. An answer to an approval becomes the tool message that
// replaces the call's result.
func decisionOf(interrupt *agui.Interrupt, v Request) (*stream.Decision, error) {
	by, err := stream.QuestionSourceOf(*interrupt)
	if err != nil {
		return nil, err
	}
	d := &stream.Decision{CallID: interrupt.ToolCallID, Kind: v.Decision, Question: by.Number, Reason: v.Reason, Remember: string(v.Remember)}
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

// writeProposal writes the caller's decision about an interrupt to the log, and returns it in the
// form of the workflow: digests, and the sequence of the proposal. The same decision of the same
// caller is the same proposal. channel is recorded for the audit. The proposal alone has no effect.
func (s *Service) writeProposal(ctx context.Context, run stream.Run, interrupt *agui.Interrupt, v Request, channel string) (runs.Decision, error) {
	content, err := decisionOf(interrupt, v)
	if err != nil {
		return runs.Decision{}, err
	}
	// The workflow gets digests instead of contents, because its history must stay small.
	d := runs.Decision{CallID: content.CallID, Kind: runs.DecisionKind(v.Decision), Question: content.Question, By: voter(request.Caller(ctx)), Remember: runs.RememberScope(v.Remember), Allowed: v.allowed}
	if len(content.Args) > 0 {
		d.Args = runs.DigestArgs(string(content.Args))
	}
	// The digest comes first: content.By and content.Channel must not be part of it.
	digest, err := digestOf(ctx, content)
	if err != nil {
		return d, err
	}
	content.By, content.Channel = request.Requester(ctx), channel
	p, err := s.find.Log.ProposeDecision(ctx, run, digest, content)
	d.Input, d.Digest = p.Seq, p.Digest[:min(len(p.Digest), maxDecisionDigest)]
	return d, err
}

// LateAnswers returns the answers of resume to interrupts that are resolved already, so that the
// run can show the decision that stands instead. An invalid answer is returned without content.
func LateAnswers(resume []agui.ResumeEntry, thread *snapshot.Snapshot) []stream.LateAnswer {
	var late []stream.LateAnswer
	for _, entry := range resume {
		interrupt := interruptByID(thread.Answered, entry.InterruptID)
		if interrupt == nil {
			continue
		}
		answer := stream.LateAnswer{InterruptID: interrupt.ID}
		v, err := requestOf(interrupt, entry, "")
		if err == nil {
			v, err = v.normalized(thread, interrupt, "")
		}
		if err == nil {
			answer = answerOf(interrupt, v)
		}
		late = append(late, answer)
	}
	return late
}

// answerOf returns a request as the answer to an interrupt. An invalid request has no content.
func answerOf(interrupt *agui.Interrupt, v Request) stream.LateAnswer {
	answer := stream.LateAnswer{InterruptID: interrupt.ID}
	if d, err := decisionOf(interrupt, v); err == nil {
		answer.Decision = *d
	}
	return answer
}

// maxDecisionDigest is how many characters of a digest the workflow gets: enough to tell decisions
// apart, and few bytes in its history.
const maxDecisionDigest = 32

// digestOf returns the digest that identifies a decision, by its content and the caller's tenant
// and subject. The same decision of one person over two channels, or with other roles, is the same;
// the decisions of two persons differ. content must not have By or Channel yet.
func digestOf(ctx context.Context, content *stream.Decision) ([sha256.Size]byte, error) {
	compared := *content
	if by, ok := auth.From(ctx); ok {
		compared.By = &auth.Principal{Tenant: by.Tenant, Subject: by.Subject}
	}
	body, err := json.Marshal(compared)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("api: encode decision: %w", err)
	}
	return sha256.Sum256(body), nil
}

// WithoutAnswers returns an input's messages without tool messages that are not new results. Some
// clients send one next to an answer in resume, for a call with an interrupt: it repeats the
// answer. Unless the input replaces the conversation, results of calls that have another result are
// left out too. Messages that the thread has stay.
func WithoutAnswers(messages []agui.Message, thread *snapshot.Snapshot, history snapshot.History) []agui.Message {
	interrupts := slices.Concat(thread.Interrupts, thread.Answered)
	return slices.DeleteFunc(slices.Clone(messages), func(m agui.Message) bool {
		if m.Role != agui.RoleTool || hasMessage(thread, m.ID) {
			return false
		}
		return history != snapshot.HistoryReplace && answersTwice(m, thread) ||
			slices.ContainsFunc(interrupts, func(q agui.Interrupt) bool { return q.ToolCallID == m.ToolCallID })
	})
}

// answersTwice reports whether a message is a new result of a call that already has one, which the
// server recorded. A result that a client's input has added does not count.
func answersTwice(m agui.Message, thread *snapshot.Snapshot) bool {
	if m.Role != agui.RoleTool || hasMessage(thread, m.ID) {
		return false
	}
	e := resultOf(thread, m.ToolCallID)
	return e != nil && e.Sent == ""
}

// AnswersLate reports whether all answers of an input come too late: all its entries of resume are
// about resolved interrupts or, without entries, its only new messages are results of calls that
// have one. The run of such an input shows the decisions that stand.
func AnswersLate(in *agui.RunAgentInput, thread *snapshot.Snapshot) bool {
	if len(in.Resume) > 0 {
		return !slices.ContainsFunc(in.Resume, func(entry agui.ResumeEntry) bool {
			return !slices.ContainsFunc(thread.Answered, func(q agui.Interrupt) bool { return q.ID == entry.InterruptID })
		})
	}
	twice := func(m agui.Message) bool { return answersTwice(m, thread) }
	return slices.ContainsFunc(in.Messages, twice) &&
		!slices.ContainsFunc(in.Messages, func(m agui.Message) bool { return !hasMessage(thread, m.ID) && !twice(m) })
}

// Requester returns the principal that requested a run; nil = an anonymous caller. answers reports
// that the input only answers interrupts. Such a run continues the run before, and keeps its
// requester: otherwise an approver would become the requester, and notByRequester would apply to
// the wrong person.
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
