package narration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// Narrator turns the chunks of one completion into AG-UI events on a lane, and collects the step's
// result. IDs derive from the run and the step, not from the attempt or the provider, so every
// attempt uses the same ones. It is used by one goroutine.
//
// A text ends before a tool call begins, so an attempt that dies in a tool call leaves a complete
// text. If the model then continues its text, the message is opened again.
type Narrator struct {
	run  stream.Run
	step string
	// Scope is that of the place among steps; "" = none.
	Scope   string
	attempt *stream.Attempt
	offered []string
	Clients []llm.Tool // client tools
	// Delegates are the agents that the model may give a task, by a tool call.
	Delegates []Delegate
	Handoffs  []Handoff             // those that it may hand the thread over to
	Gate      Gate                  // nil = no call needs an approval
	places    map[string]tools.Spec // tools with a task queue or a sequence
	sequences []string
	predict   predictor
	shows     *Reporter // of the provider's progress; nil = it has reported none

	messageID string
	texting   bool
	began     []string     // messages, in the order in which clients have them
	untold    []agui.Event // events that the log refused because the run is cancelled
	text      strings.Builder
	thinking  thinking
	calls     []*toolCall
	// Answer is what the activity returns to the workflow.
	Answer runs.ModelAnswer
}

// Gate returns the approval that a tool call needs before it is made; nil = none.
type Gate func(tool, arguments string) *runs.Approval

// New returns a narrator of a step. attempt may be nil if only Propose is used.
func New(run stream.Run, step string, attempt *stream.Attempt) *Narrator {
	return &Narrator{
		run: run, step: step, attempt: attempt, messageID: run.Identify("msg", step), thinking: thinking{run: run, step: step},
		Answer: runs.ModelAnswer{Outcome: runs.OutcomeSuccess},
	}
}

// Offer adds names of tools that the workflow may be told. Other names are content, which only the
// log has.
func (n *Narrator) Offer(tools []llm.Tool) {
	for _, t := range tools {
		n.offered = append(n.offered, t.Name)
	}
}

// Place tells the task queue and the sequence of each tool.
func (n *Narrator) Place(offered []tools.Tool) {
	n.places = map[string]tools.Spec{}
	for _, t := range offered {
		n.places[t.Spec().Name] = t.Spec()
	}
}

// put tells the workflow the task queue of a call, and the calls with which it has to take turns.
func (n *Narrator) put(call *runs.Call) {
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

// Tell emits the events of one chunk.
func (n *Narrator) Tell(ctx context.Context, chunk llm.Chunk) error {
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
		return n.show(ctx, func(r *Reporter) error { return r.Activity(c.Name, c.Kind, c.Content) })
	case llm.ActivityPatch:
		return n.show(ctx, func(r *Reporter) error { return r.patchActivity(c.Name, c.Patch) })
	case llm.Finish:
		n.Answer.Finish = string(c.Reason)
	}
	if len(events) == 0 {
		return nil
	}
	return n.emit(ctx, events...)
}

// emit logs events, and notes the order in which messages begin: clients have them in that order.
func (n *Narrator) emit(ctx context.Context, events ...agui.Event) error {
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

func (n *Narrator) begin(id string) {
	if !slices.Contains(n.began, id) {
		n.began = append(n.began, id)
	}
}

// show emits the progress that a provider reports, within the bounds of tools' reports.
func (n *Narrator) show(ctx context.Context, report func(*Reporter) error) error {
	if n.shows == nil {
		n.shows = NewReporter(ctx, n.run, n.step, nil, n.emit)
	}
	err := report(n.shows)
	var refused *tools.ReportError
	if errors.As(err, &refused) {
		return &llm.Error{Code: llm.CodeMalformedResponse, Message: "the provider's activity: " + refused.Error()}
	}
	return err
}

func (n *Narrator) tellText(delta string) []agui.Event {
	n.text.WriteString(delta)
	content := &agui.TextMessageContent{MessageID: n.messageID, Delta: delta}
	if n.texting {
		return []agui.Event{content}
	}
	n.texting = true
	return append(n.thinking.end(), &agui.TextMessageStart{MessageID: n.messageID, Role: agui.RoleAssistant}, content)
}

func (n *Narrator) tellCall(c llm.ToolCallStart) []agui.Event {
	call := &toolCall{index: c.Index, id: n.run.Identify("call", fmt.Sprintf("%s/%d", n.step, c.Index)), providerID: c.ID, name: c.Name}
	n.calls = append(n.calls, call)
	events := append(n.thinking.end(), n.endText()...)
	var before []agui.Event
	call.predicted, before = n.predict.begin(c.Name)
	return append(append(events, before...), &agui.ToolCallStart{ToolCallID: call.id, ToolCallName: call.name, ParentMessageID: n.messageID})
}

func (n *Narrator) call(index int) *toolCall {
	for _, call := range n.calls {
		if call.index == index {
			return call
		}
	}
	return nil
}

func (n *Narrator) endText() []agui.Event {
	if !n.texting {
		return nil
	}
	n.texting = false
	return []agui.Event{&agui.TextMessageEnd{MessageID: n.messageID}}
}

// Finish closes what is open and writes the step's result. A cancelled step is finished as well:
// what the model said is kept and shown. ctx must not be the one that the cancellation has ended.
func (n *Narrator) Finish(ctx context.Context) (runs.ModelAnswer, error) {
	events := append(append(n.untold, n.thinking.end()...), n.endText()...)
	for _, call := range n.calls {
		events = append(append(events, call.settle()...), &agui.ToolCallEnd{ToolCallID: call.id})
	}
	result, err := n.result()
	if err != nil {
		return runs.ModelAnswer{}, err
	}
	n.Answer.Seq, err = n.attempt.Finish(ctx, result, events...)
	return n.Answer, err
}

// result returns the result of the step. It fills in Answer.
func (n *Narrator) result() (*stream.Result, error) {
	result := &stream.Result{Scope: n.Scope}
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
			n.Answer.WaitCount++
		}
		if waits.Placed() {
			n.Answer.OrderedCount++
		}
		if n.Answer.CallCount == 0 && len(n.Answer.Calls) < runs.MaxCalls && n.Answer.WaitCount <= runs.MaxInterrupts {
			n.Answer.Calls = append(n.Answer.Calls, waits)
			n.yield(call, waits, i)
		} else { // more that wait than a run may end with: what they wait for doesn't matter
			n.Answer.CallCount = len(n.calls)
		}
	}
	if n.text.Len() > 0 || len(n.calls) > 0 {
		n.Answer.MessageID = n.messageID
	}
	for _, id := range n.began {
		result.Messages = append(result.Messages, n.withID(id, message))
	}
	var err error
	result.Answer, err = n.encode()
	return result, err
}

// roomForSeq is the room for Answer.Seq, in bytes, which is set after the encoding.
const roomForSeq = 64

// encode encodes Answer for the log. An answer that is too large for the workflow has no calls,
// only their number.
func (n *Narrator) encode() (json.RawMessage, error) {
	encoded, err := json.Marshal(n.Answer)
	if err == nil && len(encoded) > runs.MaxPayload-roomForSeq {
		n.Answer.Calls, n.Answer.Subagents, n.Answer.Handoff, n.Answer.CallCount = nil, nil, nil, len(n.calls)
		encoded, err = json.Marshal(n.Answer)
	}
	if err != nil {
		return nil, fmt.Errorf("activities: encode answer: %w", err)
	}
	return encoded, nil
}

// waits returns a call as the workflow is told of it: who makes it, and whether it needs an
// approval.
func (n *Narrator) waits(c *toolCall) runs.Call {
	call := runs.Call{ID: c.id, Tool: n.toolName(c.name)}
	n.put(&call)
	switch {
	case call.Tool != "" && n.Gate != nil:
		call.Approval = n.Gate(c.name, c.arguments.String())
	case call.Tool == "":
		call.Client = slices.ContainsFunc(n.Clients, func(t llm.Tool) bool { return t.Name == c.name })
	}
	return call
}

// withID returns the message with an ID: the answer, a reasoning message, or an activity, of which
// only the place counts.
func (n *Narrator) withID(id string, answer agui.Message) agui.Message {
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

func (n *Narrator) toolName(tool string) string {
	if slices.Contains(n.offered, tool) {
		return tool
	}
	return ""
}

// Propose makes the message of a step that no model writes: one tool call. It returns the ID of the
// call, the events that show it, and the result of the step. Narrator.Answer has the call.
func (n *Narrator) Propose(tool, arguments string) (callID string, events []agui.Event, result *stream.Result, err error) {
	call := &toolCall{id: n.run.Identify("call", n.step+"/0"), name: tool}
	call.providerID = call.id
	call.arguments.WriteString(arguments)
	n.calls, n.began = []*toolCall{call}, []string{n.messageID}
	if result, err = n.result(); err != nil {
		return "", nil, nil, err
	}
	return call.id, []agui.Event{
		&agui.ToolCallStart{ToolCallID: call.id, ToolCallName: tool, ParentMessageID: n.messageID},
		&agui.ToolCallArgs{ToolCallID: call.id, Delta: arguments},
		&agui.ToolCallEnd{ToolCallID: call.id},
	}, result, nil
}

// Predict makes the state follow arguments of tool calls while the model writes them.
func (n *Narrator) Predict(predictions []agents.Prediction) { n.predict.predictions = predictions }

// OfferOnly allows one name of a tool.
func (n *Narrator) OfferOnly(tool string) { n.offered = []string{tool} }
