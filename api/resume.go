package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// A thread whose last run ended with interrupts waits for answers. They come with the next input, in resume, or one by one. The API checks
// what needs no workflow, and writes the answers to the log. The workflow decides.

// verdict is a decision about an interrupt, as in the approval routes.
type verdict struct {
	Decision string          `json:"decision"` // approve, reject, edit, answer; cancel only in resume
	Args     json.RawMessage `json:"args,omitempty"`
	// Content is a text that replaces the call's result, or the answer to the tool's question.
	Content json.RawMessage `json:"content,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	// Remember is the scope of an approval that covers further calls.
	Remember remember `json:"remember,omitempty"`
	// allowed is the figure of an edit about a soft limit.
	allowed int64
}

// remember is the scope of an approval that covers further calls, as a client writes it; "" = none.
type remember string

// UnmarshalJSON reads true as the scope arguments. It accepts any value; isKnown checks the scope.
func (r *remember) UnmarshalJSON(raw []byte) error {
	switch string(raw) {
	case "true":
		*r = remember(runs.RememberArguments)
	case "false", "null":
		*r = ""
	default:
		if json.Unmarshal(raw, (*string)(r)) != nil || *r == "" {
			*r = "?"
		}
	}
	return nil
}

func (r remember) isKnown() bool {
	return r == "" || r == remember(runs.RememberArguments) || r == remember(runs.RememberTool)
}

// check validates the members of a verdict; at is the pointer to it in the request.
func (v verdict) check(at string) error {
	switch {
	case v.Decision == string(runs.DecisionEdit) && !isObject(v.Args):
		return unfit(editPointer(at), "must be an object: the arguments to make the call with")
	case v.Decision == string(runs.DecisionAnswer) && len(v.Content) == 0:
		return unfit(contentPointer(at), "must be the answer, or the result to give the model")
	case !v.Remember.isKnown():
		return unfit(at+"/remember", `must be true, "arguments" or "tool"`)
	case v.Remember != "" && v.Decision != string(runs.DecisionApprove):
		return unfit(at+"/remember", "belongs to an approval of the call as it is")
	case len(v.Reason) > commands.MaxReasonBytes:
		return unfit(at+"/reason", fmt.Sprintf("must be at most %d bytes", commands.MaxReasonBytes))
	}
	switch runs.DecisionKind(v.Decision) {
	case runs.DecisionApprove, runs.DecisionEdit, runs.DecisionReject, runs.DecisionAnswer:
		return nil
	}
	return unfit(at+"/decision", `must be "approve", "edit", "reject" or "answer"`)
}

// normalized returns the verdict as it is proposed: an edit to the arguments that the model wrote is an approval of them, and one about
// a soft limit has all figures.
func (v verdict) normalized(thread *snapshot.Snapshot, question *agui.Interrupt, at string) (verdict, error) {
	asked, err := stream.ApprovalSourceOf(*question)
	if asked == nil || err != nil || v.Decision != string(runs.DecisionEdit) {
		return v, err
	}
	if asked.Step == pipeline.LimitPath {
		return v.aboutLimit(thread, question, at)
	}
	// An edit that was decided has replaced the arguments in the conversation.
	written := askedCall(thread, question.ToolCallID).Arguments
	if runs.DigestArgs(written) == asked.ArgsDigest && sameText(v.Args, []byte(written)) {
		return verdict{Decision: string(runs.DecisionApprove), Reason: v.Reason}, nil
	}
	return v, nil
}

// sameText reports whether two JSON texts differ in white space only.
func sameText(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

func unfit(pointer, detail string) *problem.Problem {
	p := problem.New(http.StatusUnprocessableEntity, "invalid_answer", detail)
	p.Pointer = pointer
	return p
}

func isObject(raw json.RawMessage) bool {
	return len(bytes.TrimSpace(raw)) > 0 && bytes.TrimSpace(raw)[0] == '{'
}

// resumed are the decisions of an input about what the thread waits for: entries of resume, and results of client tools.
func (s *Server) resumed(ctx context.Context, in *acceptedInput, thread *snapshot.Snapshot) ([]runs.Decision, []stream.LateAnswer, error) {
	if !thread.Sealed || len(thread.Interrupts)+len(thread.ClientCalls) == 0 {
		return nil, nil, nil
	}
	asked := stream.Run{Thread: in.run.Thread, ID: thread.RunID}
	answers, unknown, err := s.answers(ctx, in.input.Resume, in.run.Thread, thread)
	if err != nil {
		return nil, nil, err
	}
	var decisions []runs.Decision
	var told []stream.LateAnswer
	for _, a := range answers {
		d, err := s.propose(ctx, asked, a.question, a.verdict, request.ChannelInput)
		if err != nil {
			return nil, nil, err
		}
		decisions, told = append(decisions, d), append(told, answerOf(a.question, a.verdict))
	}
	if unknown > 0 {
		s.logger.WarnContext(ctx, "the input answers unknown interrupts, which are ignored", "count", unknown)
	}
	return append(decisions, results(in.input.Messages, thread)...), told, nil
}

// answer is an entry of resume.
type answer struct {
	question *agui.Interrupt
	verdict  verdict
}

// answers reads the entries of resume, and refuses all if one is invalid. Entries about unknown interrupts are only counted.
func (s *Server) answers(ctx context.Context, resume []agui.ResumeEntry, t stream.Thread, thread *snapshot.Snapshot) (answers []answer, unknown int, err error) {
	answered := map[string]bool{}
	for i, entry := range resume {
		at := fmt.Sprintf("/resume/%d", i)
		question := questionOf(thread.Interrupts, entry.InterruptID)
		if question == nil {
			unknown++
			continue
		}
		if answered[question.ID] {
			return nil, 0, unfit(at+"/interruptId", "is answered twice")
		}
		answered[question.ID] = true
		v, err := verdictOf(question, entry, at)
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

// results are those of client tools for calls that the thread waits for, one for each.
func results(messages []agui.Message, thread *snapshot.Snapshot) []runs.Decision {
	open := map[string]bool{}
	if at := lastCalls(thread); at >= 0 {
		for _, c := range thread.Entries[at].Message.ToolCalls {
			open[c.ID] = true
		}
	}
	var decisions []runs.Decision
	for _, m := range messages {
		if m.Role != agui.RoleTool || !open[m.ToolCallID] || knows(thread, m.ID) {
			continue
		}
		delete(open, m.ToolCallID)
		decisions = append(decisions, runs.Decision{CallID: m.ToolCallID, Kind: runs.DecisionToolResult, Digest: stream.ResultDigest(&m)})
	}
	return decisions
}

func questionOf(asked []agui.Interrupt, id string) *agui.Interrupt {
	i := slices.IndexFunc(asked, func(q agui.Interrupt) bool { return q.ID == id })
	if i < 0 {
		return nil
	}
	return &asked[i]
}

func knows(thread *snapshot.Snapshot, id string) bool {
	return slices.ContainsFunc(thread.Entries, func(e snapshot.Entry) bool { return e.Message.ID == id })
}

// verdictOf reads an entry of resume, whose payload has the form of the interrupt's responseSchema.
func verdictOf(question *agui.Interrupt, entry agui.ResumeEntry, at string) (verdict, error) {
	switch {
	case entry.Status == agui.ResumeCancelled:
		return verdict{Decision: string(runs.DecisionCancel)}, nil
	case isRaised(question):
		v := verdict{Decision: string(runs.DecisionAnswer), Content: entry.Payload}
		return v, v.check(at + "/payload")
	}
	var payload struct {
		Approved   *bool           `json:"approved"`
		EditedArgs json.RawMessage `json:"editedArgs"`
		Content    *string         `json:"content"`
		Reason     string          `json:"reason"`
		Remember   remember        `json:"remember"`
	}
	if err := json.Unmarshal(entry.Payload, &payload); err != nil || payload.Approved == nil {
		return verdict{}, unfit(at+"/payload", "must be an object as the question's responseSchema describes it, with approved true or false")
	}
	v := verdict{Args: payload.EditedArgs, Reason: payload.Reason, Remember: payload.Remember}
	switch {
	case *payload.Approved && len(payload.EditedArgs) > 0:
		v.Decision = string(runs.DecisionEdit)
	case *payload.Approved:
		v.Decision = string(runs.DecisionApprove)
	case payload.Content != nil:
		content, err := json.Marshal(*payload.Content)
		if err != nil {
			return v, fmt.Errorf("api: encode content: %w", err)
		}
		v.Decision, v.Content = string(runs.DecisionAnswer), content
	default:
		v.Decision = string(runs.DecisionReject)
	}
	return v, v.check(at + "/payload")
}

// said is a verdict as the log has it.
func said(question *agui.Interrupt, v verdict) (*stream.Decision, error) {
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
func (s *Server) propose(ctx context.Context, run stream.Run, question *agui.Interrupt, v verdict, channel string) (runs.Decision, error) {
	said, err := said(question, v)
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
	p, err := s.Log.ProposeDecision(ctx, run, digest, said)
	d.Input, d.Digest = p.Seq, p.Digest[:min(len(p.Digest), maxDecisionDigest)]
	return d, err
}

// lateAnswers are the entries of resume about interrupts that were decided before. An invalid one has no content.
func lateAnswers(resume []agui.ResumeEntry, thread *snapshot.Snapshot) []stream.LateAnswer {
	var late []stream.LateAnswer
	for _, entry := range resume {
		question := questionOf(thread.Answered, entry.InterruptID)
		if question == nil {
			continue
		}
		answer := stream.LateAnswer{InterruptID: question.ID}
		v, err := verdictOf(question, entry, "")
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

// answerOf is the answer to an interrupt.
func answerOf(question *agui.Interrupt, v verdict) stream.LateAnswer {
	answer := stream.LateAnswer{InterruptID: question.ID}
	if d, err := said(question, v); err == nil {
		answer.Said = *d
	}
	return answer
}

// maxDecisionDigest is how many characters of a digest the workflow is told: enough to tell decisions apart.
const maxDecisionDigest = 32

// digestOf identifies a decision. The same decision of the same person is one, over whatever channel and with whatever roles; those of two
// persons are two.
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

// withoutAnswers leaves out the tool messages that some clients send next to an answer: they repeat the answer, and are not the call's
// result. Unless the input replaces the conversation, it also leaves out results of calls that have another result by now.
func withoutAnswers(messages []agui.Message, thread *snapshot.Snapshot, history snapshot.History) []agui.Message {
	asked := slices.Concat(thread.Interrupts, thread.Answered)
	return slices.DeleteFunc(slices.Clone(messages), func(m agui.Message) bool {
		if m.Role != agui.RoleTool || knows(thread, m.ID) {
			return false
		}
		return history != snapshot.HistoryReplace && answersTwice(m, thread) ||
			slices.ContainsFunc(asked, func(q agui.Interrupt) bool { return q.ToolCallID == m.ToolCallID })
	})
}

// answersTwice reports whether a message is a result of a call that has one.
func answersTwice(m agui.Message, thread *snapshot.Snapshot) bool {
	if m.Role != agui.RoleTool || knows(thread, m.ID) {
		return false
	}
	e := resultOf(thread, m.ToolCallID)
	return e != nil && e.Sent == ""
}

// answersLate reports whether an input answers only what was decided before. Its run shows what was decided.
func answersLate(in *agui.RunAgentInput, thread *snapshot.Snapshot) bool {
	if len(in.Resume) > 0 {
		return !slices.ContainsFunc(in.Resume, func(entry agui.ResumeEntry) bool {
			return !slices.ContainsFunc(thread.Answered, func(q agui.Interrupt) bool { return q.ID == entry.InterruptID })
		})
	}
	twice := func(m agui.Message) bool { return answersTwice(m, thread) }
	return slices.ContainsFunc(in.Messages, twice) &&
		!slices.ContainsFunc(in.Messages, func(m agui.Message) bool { return !knows(thread, m.ID) && !twice(m) })
}
