package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// narrator turns the chunks of one completion into AG-UI events on a lane, and keeps what they add
// up to. Ids derive from the run and the step, not from the attempt nor from what the model calls
// things: another attempt tells the same story under the same ids.
//
// A text ends before a tool call begins, so that an attempt which dies in a tool call leaves a
// complete text behind; if the model then goes on to speak, the message is opened again.
type narrator struct {
	run     stream.Run
	step    string
	at      *runs.StepPlace // the place among steps; nil = none
	attempt *stream.Attempt
	offered []string
	clients []llm.Tool // which the client runs
	// delegates are the agents that the model may hand work to, as it calls tools.
	delegates []handed
	takers    []taker               // those that it may hand the thread over to
	asks      gate                  // tells which calls people decide about; nil = none
	places    map[string]tools.Spec // tools of which it matters where or when they are called
	sequences []string
	predict   predictor
	shows     *reporter // of what the provider does by itself; made when it says so

	messageID string
	texting   bool
	began     []string     // messages, in the order in which clients have them
	untold    []agui.Event // that the log did not take any more, since the run is cancelled
	text      strings.Builder
	thinking  thinking
	calls     []*narratedCall
	// summarizes tells that the step may have had a summary made.
	summarizes bool
	answer     runs.ModelAnswer
}

// narratedCall is a tool call that is being told.
type narratedCall struct {
	index                int // the provider's: need not begin at 0, nor come in order
	id, providerID, name string
	arguments            strings.Builder
	predicted            []*predicted
	followed             int // so much of the arguments was looked at
}

func newNarrator(run stream.Run, step string, attempt *stream.Attempt) *narrator {
	return &narrator{
		run: run, step: step, attempt: attempt, messageID: run.Identify("msg", step), thinking: thinking{run: run, step: step},
		answer: runs.ModelAnswer{Outcome: runs.OutcomeSuccess},
	}
}

// offer tells which names of tools may be repeated to the workflow; others are content.
func (n *narrator) offer(tools []llm.Tool) {
	for _, t := range tools {
		n.offered = append(n.offered, t.Name)
	}
}

// place tells where and when tools are called.
func (n *narrator) place(offered []tools.Tool) {
	n.places = map[string]tools.Spec{}
	for _, t := range offered {
		n.places[t.Spec().Name] = t.Spec()
	}
}

// put tells the workflow where a call of ours goes, and which ones it takes turns with.
func (n *narrator) put(call *runs.Call) {
	spec := n.places[call.Tool]
	if spec.TaskQueue != runs.TaskQueue {
		call.Queue = spec.TaskQueue
	}
	if spec.Sequence == "" {
		return
	}
	if !slices.Contains(n.sequences, spec.Sequence) {
		n.sequences = append(n.sequences, spec.Sequence)
	}
	call.Sequence = 1 + slices.Index(n.sequences, spec.Sequence)
}

// tell emits the events of one chunk.
func (n *narrator) tell(ctx context.Context, chunk llm.Chunk) error {
	var events []agui.Event
	switch c := chunk.(type) {
	case llm.ReasoningDelta:
		if c.Text != "" {
			events = append(n.endText(), n.thinking.tell(c.Text)...)
		}
	case llm.ReasoningEnd:
		var hidden *thought
		if events, hidden = n.thinking.seal(c); hidden != nil {
			n.begin(hidden.id)
		}
	case llm.TextDelta:
		events = n.tellText(c.Text)
	case llm.ToolCallStart:
		events = n.tellCall(c)
	case llm.ToolCallDelta:
		call := n.call(c.Index)
		if call == nil {
			return &llm.Error{Code: llm.CodeMalformedResponse, Message: "arguments of a tool call that did not begin"}
		}
		call.arguments.WriteString(c.Arguments)
		events = append([]agui.Event{&agui.ToolCallArgs{ToolCallID: call.id, Delta: c.Arguments}}, call.follow()...)
	case llm.Activity:
		return n.show(ctx, func(r *reporter) error { return r.Activity(c.Name, c.Kind, c.Content) })
	case llm.ActivityPatch:
		return n.show(ctx, func(r *reporter) error { return r.patchActivity(c.Name, c.Patch) })
	case llm.Finish:
		n.answer.Finish = string(c.Reason)
	}
	if len(events) == 0 {
		return nil
	}
	return n.emit(ctx, events...)
}

// emit logs events, and notes the order in which messages begin: clients have them in that order.
func (n *narrator) emit(ctx context.Context, events ...agui.Event) error {
	for _, e := range events {
		switch e := e.(type) {
		case *agui.ReasoningMessageStart:
			n.begin(e.MessageID)
		case *agui.TextMessageStart:
			n.begin(e.MessageID)
		case *agui.ToolCallStart:
			n.begin(e.ParentMessageID)
		case *agui.ActivitySnapshot:
			n.begin(e.MessageID)
		}
	}
	err := n.attempt.Emit(ctx, events...)
	if err != nil {
		n.untold = append(n.untold, events...)
	}
	return err
}

func (n *narrator) begin(id string) {
	if !slices.Contains(n.began, id) {
		n.began = append(n.began, id)
	}
}

// show reports what the provider does by itself, under the rules that tools' reports have.
func (n *narrator) show(ctx context.Context, report func(*reporter) error) error {
	if n.shows == nil {
		n.shows = newReporter(ctx, n.run, n.step, nil, n.emit)
	}
	err := report(n.shows)
	var refused *tools.ReportError
	if errors.As(err, &refused) {
		return &llm.Error{Code: llm.CodeMalformedResponse, Message: "the provider's activity: " + refused.Error()}
	}
	return err
}

func (n *narrator) tellText(delta string) []agui.Event {
	n.text.WriteString(delta)
	content := &agui.TextMessageContent{MessageID: n.messageID, Delta: delta}
	if n.texting {
		return []agui.Event{content}
	}
	n.texting = true
	return append(n.thinking.end(), &agui.TextMessageStart{MessageID: n.messageID, Role: agui.RoleAssistant}, content)
}

func (n *narrator) tellCall(c llm.ToolCallStart) []agui.Event {
	call := &narratedCall{index: c.Index, id: n.run.Identify("call", fmt.Sprintf("%s/%d", n.step, c.Index)), providerID: c.ID, name: c.Name}
	n.calls = append(n.calls, call)
	events := append(n.thinking.end(), n.endText()...)
	var before []agui.Event
	call.predicted, before = n.predict.begin(c.Name)
	return append(append(events, before...), &agui.ToolCallStart{ToolCallID: call.id, ToolCallName: call.name, ParentMessageID: n.messageID})
}

func (n *narrator) call(index int) *narratedCall {
	for _, call := range n.calls {
		if call.index == index {
			return call
		}
	}
	return nil
}

func (n *narrator) endText() []agui.Event {
	if !n.texting {
		return nil
	}
	n.texting = false
	return []agui.Event{&agui.TextMessageEnd{MessageID: n.messageID}}
}

// finish closes what is open and writes the step's result. It does so for a cancelled step too,
// whose context has ended: what was said is kept, and all that is kept is told.
func (n *narrator) finish(ctx context.Context) (runs.ModelAnswer, error) {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	events := append(append(n.untold, n.thinking.end()...), n.endText()...)
	for _, call := range n.calls {
		events = append(append(events, call.settle()...), &agui.ToolCallEnd{ToolCallID: call.id})
	}
	result, err := n.result()
	if err != nil {
		return runs.ModelAnswer{}, err
	}
	n.answer.Seq, err = n.attempt.Finish(ctx, result, events...)
	return n.answer, err
}

// result is the finished story.
func (n *narrator) result() (*stream.Result, error) {
	result := &stream.Result{Scope: scopeOf(n.at)}
	message := agui.Message{ID: n.messageID, Role: agui.RoleAssistant}
	if n.text.Len() > 0 {
		message.Content = agui.TextContent(n.text.String())
	}
	for i, call := range n.calls {
		message.ToolCalls = append(message.ToolCalls, agui.ToolCall{ID: call.id, Name: call.name, Arguments: call.arguments.String()})
		if result.ProviderIDs == nil {
			result.ProviderIDs = map[string]string{}
		}
		result.ProviderIDs[call.id] = call.providerID
		waits := n.waits(call)
		n.handOver(call, &waits)
		if waits.Client || waits.Approval != nil {
			n.answer.WaitCount++
		}
		if waits.Placed() {
			n.answer.OrderedCount++
		}
		if n.answer.CallCount == 0 && len(n.answer.Calls) < runs.MaxCalls && n.answer.WaitCount <= runs.MaxInterrupts {
			n.answer.Calls = append(n.answer.Calls, waits)
			n.yield(call, waits, i)
		} else { // more that wait than a run may end with: what they wait for doesn't matter
			n.answer.CallCount = len(n.calls)
		}
	}
	if n.text.Len() > 0 || len(n.calls) > 0 {
		n.answer.MessageID = n.messageID
	}
	for _, id := range n.began {
		result.Messages = append(result.Messages, n.told(id, message))
	}
	var err error
	result.Answer, err = n.encode()
	return result, err
}

// roomForSeq is what is added to an answer behind its encoding.
const roomForSeq = 64

// encode is the answer as it is recorded. One that is too large for the workflow names no calls.
func (n *narrator) encode() (json.RawMessage, error) {
	encoded, err := json.Marshal(n.answer)
	if err == nil && len(encoded) > runs.MaxPayload-roomForSeq {
		n.answer.Calls, n.answer.Subagents, n.answer.Handoff, n.answer.CallCount = nil, nil, nil, len(n.calls)
		encoded, err = json.Marshal(n.answer)
	}
	if err != nil {
		return nil, fmt.Errorf("activities: encode answer: %w", err)
	}
	return encoded, nil
}

// waits is a call as the workflow is told of it: who runs it, and whether people decide about it first.
func (n *narrator) waits(c *narratedCall) runs.Call {
	call := runs.Call{ID: c.id, Tool: n.known(c.name)}
	n.put(&call)
	switch {
	case call.Tool != "" && n.asks != nil:
		call.Approval = n.asks(c.name, c.arguments.String())
	case call.Tool == "":
		call.Client = slices.ContainsFunc(n.clients, func(t llm.Tool) bool { return t.Name == c.name })
	}
	return call
}

// told is the message that began under an id: the answer, a block of thinking, or else an activity, of
// which only the place is told here.
func (n *narrator) told(id string, answer agui.Message) agui.Message {
	if id == n.messageID {
		return answer
	}
	for _, block := range n.thinking.blocks {
		if block.id == id {
			return block.message()
		}
	}
	return agui.Message{ID: id, Role: agui.RoleActivity, Content: agui.ObjectContent(json.RawMessage("{}"))}
}

func (n *narrator) known(tool string) string {
	if slices.Contains(n.offered, tool) {
		return tool
	}
	return ""
}

// maxModelName bounds what a provider may call its model in a history.
const maxModelName = 128

// modelName is what a provider calls its model, if that is a name.
func modelName(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune(`<>&"\`, r) {
			return '_'
		}
		return r
	}, s[:min(len(s), maxModelName)])
}

// maxTokenCount is more than any call can cost. What a provider reports beyond, or below zero, says
// nothing; added up, it could not be written any more.
const maxTokenCount = 1 << 40

func tokenCount(n *int64) *int64 {
	if n == nil || *n < 0 || *n > maxTokenCount {
		return nil
	}
	return n
}

func usageOf(f llm.Finish) runs.Usage {
	u := f.Usage
	return runs.Usage{
		Provider: f.Provider, Model: modelName(f.Model), Input: tokenCount(u.Input), Output: tokenCount(u.Output), Total: tokenCount(u.Total),
		Reasoning: tokenCount(u.Reasoning), CachedInput: tokenCount(u.CachedInput), CacheWrite: tokenCount(u.CacheWrite),
	}
}

// scopeOf is the scope of what is said at a place among steps.
func scopeOf(at *runs.StepPlace) string {
	if at == nil {
		return ""
	}
	return at.Scope
}
