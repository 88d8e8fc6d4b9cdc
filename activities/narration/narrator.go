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
// result. The caller creates one for each attempt, sets what the model was offered, calls Add for
// each chunk, and Finish once. A step without a model calls Propose instead. IDs derive from the
// run and the step, not from the attempt or the provider, so all attempts use the same ones:
// clients replace what a failed attempt has shown.
//
// A text ends before a tool call begins, so an attempt that dies in a tool call leaves a complete
// text. If the model then continues its text, the message is opened again.
//
// A Narrator is used by one goroutine. The caller owns the attempt.
type Narrator struct {
	Offered
	completion

	run  stream.Run
	step string
	// Scope marks the messages as those of one step of a pipeline; "" = none. Visibility says who
	// sees them.
	Scope      string
	Visibility stream.Visibility
	// Output is what the answer must be.
	Output RequiredOutput
	// attempt writes the events; nil if only Propose is used.
	attempt *stream.Attempt
	// predict makes the state follow arguments. reporter emits the provider's own progress; nil =
	// it has reported none yet.
	predict  predictor
	reporter *Reporter
	// Answer is what the activity returns to the workflow. Its outcome is success unless the caller
	// changes it. Finish and Propose fill in the message and its calls.
	Answer runs.ModelAnswer
}

// Offered is what the model may call. The zero value offers nothing.
type Offered struct {
	// names are those of tools that the workflow may know (see AllowNames). specs has the specs of
	// the worker's tools, by name (see SetSpecs).
	names []string
	specs map[string]tools.Spec
	// Clients are the client tools.
	Clients []llm.Tool
	// Subagents are the subagents that the model may call, Handoffs the agents to which it may hand
	// the thread over: the results of OfferSubagents and OfferHandoffs.
	Subagents []Subagent
	Handoffs  []Handoff
	// State has the changes of the state that results of client tools cause.
	State agents.State
	// Gate decides which calls need an approval; nil = none.
	Gate Gate
}

// completion is the part of the model's answer that a Narrator has received.
type completion struct {
	messageID  string
	isTextOpen bool // the text message is open
	text       strings.Builder
	thinking   thinking
	calls      []*toolCall
	// sequences are the names of sequences in this message: calls refer to them by number.
	sequences []string
	// messageIDs are the IDs of the messages in the order in which clients have them. unsent are
	// events that the attempt refused, because the run is cancelled; Finish writes them.
	messageIDs []string
	unsent     []agui.Event
}

// Gate returns the approval that a tool call needs before it is made; nil = none. arguments is what
// the model wrote, which may be invalid JSON.
type Gate func(tool, arguments string) *runs.Approval

// New returns a narrator for an attempt of a step. attempt may be nil if only Propose is used.
func New(run stream.Run, step string, attempt *stream.Attempt) *Narrator {
	return &Narrator{
		completion: completion{messageID: run.Identify("msg", step), thinking: thinking{run: run, step: step}},
		run:        run, step: step, attempt: attempt, Answer: runs.ModelAnswer{Outcome: runs.OutcomeSuccess},
	}
}

// AllowNames adds the names of tools that the workflow may know. Other names are content, because a
// model may make them up; the workflow gets an empty name for them.
func (n *Narrator) AllowNames(tools []llm.Tool) {
	for _, t := range tools {
		n.names = append(n.names, t.Name)
	}
}

// SetSpecs sets the specs of the worker's tools, which have the task queue and the sequence of
// each.
func (n *Narrator) SetSpecs(offered []tools.Tool) {
	n.specs = map[string]tools.Spec{}
	for _, t := range offered {
		n.specs[t.Spec().Name] = t.Spec()
	}
}

// setQueueAndSequence sets the task queue and the sequence of a call. Calls with the same sequence
// number are made one after the other. The workflow gets a number instead of the name, to keep its
// payload small.
func (n *Narrator) setQueueAndSequence(call *runs.Call) {
	spec := n.specs[call.Tool]
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

// Add emits the events of one chunk, and returns when the attempt has taken them, which may mean
// waiting for the log. The error is the attempt's, or a *llm.Error if the provider has broken its
// protocol.
func (n *Narrator) Add(ctx context.Context, chunk llm.Chunk) error {
	var events []agui.Event
	switch c := chunk.(type) {
	case llm.ReasoningDelta:
		if c.Text != "" {
			events = append(n.endText(), n.thinking.addText(c.Text)...)
		}
	case llm.ReasoningEnd:
		var hidden *thought
		if events, hidden = n.thinking.endBlock(c); hidden != nil {
			// A hidden block has no event, but a place among the messages.
			n.addMessageID(hidden.id)
		}
	case llm.TextDelta:
		events = n.addText(c.Text)
	case llm.ToolCallStart:
		events = n.addCall(c)
	case llm.ToolCallDelta:
		call := n.findCall(c.Index)
		if call == nil {
			return &llm.Error{Code: llm.CodeMalformedResponse, Message: "the provider sent arguments of a tool call before its start"}
		}
		call.arguments.WriteString(c.Arguments)
		events = append([]agui.Event{&agui.ToolCallArgs{ToolCallID: call.id, Delta: c.Arguments}}, call.follow()...)
	case llm.Activity:
		return n.reportProgress(ctx, func(r *Reporter) error { return r.Activity(c.Name, c.Kind, c.Content) })
	case llm.ActivityPatch:
		return n.reportProgress(ctx, func(r *Reporter) error { return r.patchActivity(c.Name, c.Patch) })
	case llm.Finish:
		// Finish, not this chunk, closes open messages: a completion may end without it.
		n.Answer.Finish = string(c.Reason)
	}
	if len(events) == 0 {
		return nil
	}
	return n.emit(ctx, events...)
}

// emit hands events to the attempt, and notes the order in which messages begin. Events that the
// attempt refuses are kept for Finish: a cancel ends ctx before the answer is complete.
func (n *Narrator) emit(ctx context.Context, events ...agui.Event) error {
	for _, e := range events {
		switch e := e.(type) {
		case *agui.ReasoningMessageStart:
			n.addMessageID(e.MessageID)
		case *agui.TextMessageStart:
			n.addMessageID(e.MessageID)
		case *agui.ToolCallStart:
			n.addMessageID(e.ParentMessageID)
		case *agui.ActivitySnapshot:
			n.addMessageID(e.MessageID)
		}
	}
	err := n.attempt.Emit(ctx, events...)
	if err != nil {
		n.unsent = append(n.unsent, events...)
	}
	return err
}

// addMessageID notes that a message has its place after those that have begun.
func (n *Narrator) addMessageID(id string) {
	if !slices.Contains(n.messageIDs, id) {
		n.messageIDs = append(n.messageIDs, id)
	}
}

// reportProgress emits progress that a provider reports about its own work, such as a search. The
// bounds are those of a tool's reports; a report beyond them is the provider's error.
func (n *Narrator) reportProgress(ctx context.Context, report func(*Reporter) error) error {
	if n.reporter == nil {
		n.reporter = NewReporter(ctx, n.run, n.step, nil, n.emit)
	}
	err := report(n.reporter)
	var reportErr *tools.ReportError
	if errors.As(err, &reportErr) {
		return &llm.Error{Code: llm.CodeMalformedResponse, Message: "the provider's activity: " + reportErr.Error()}
	}
	return err
}

// addText returns the events for a piece of text. The first one opens the message and closes open
// reasoning.
func (n *Narrator) addText(delta string) []agui.Event {
	n.text.WriteString(delta)
	content := &agui.TextMessageContent{MessageID: n.messageID, Delta: delta}
	if n.isTextOpen {
		return []agui.Event{content}
	}
	n.isTextOpen = true
	return append(n.thinking.closeMessage(), &agui.TextMessageStart{MessageID: n.messageID, Role: agui.RoleAssistant}, content)
}

// addCall returns the events with which a tool call begins. Its ID derives from the index of the
// call; the provider's own ID is kept for later requests.
func (n *Narrator) addCall(c llm.ToolCallStart) []agui.Event {
	call := &toolCall{index: c.Index, id: n.run.Identify("call", fmt.Sprintf("%s/%d", n.step, c.Index)), providerID: c.ID, name: c.Name}
	n.calls = append(n.calls, call)
	events := append(n.thinking.closeMessage(), n.endText()...)
	var predictionEvents []agui.Event
	call.predicted, predictionEvents = n.predict.match(c.Name)
	return append(append(events, predictionEvents...), &agui.ToolCallStart{ToolCallID: call.id, ToolCallName: call.name, ParentMessageID: n.messageID})
}

// findCall returns the call with a provider's index; nil = it has not begun.
func (n *Narrator) findCall(index int) *toolCall {
	for _, call := range n.calls {
		if call.index == index {
			return call
		}
	}
	return nil
}

// endText returns the event that closes the text message; nil = it is not open.
func (n *Narrator) endText() []agui.Event {
	if !n.isTextOpen {
		return nil
	}
	n.isTextOpen = false
	return []agui.Event{&agui.TextMessageEnd{MessageID: n.messageID}}
}

// Finish closes what is open, and writes the done record with the step's result. It returns Answer
// with the sequence of that record. A cancelled step is finished as well: what the model has sent
// so far is kept and shown, with incomplete tool calls. ctx must not be the one that the
// cancellation has ended. Nothing can be emitted afterwards.
func (n *Narrator) Finish(ctx context.Context) (runs.ModelAnswer, error) {
	events := append(append(n.unsent, n.thinking.closeMessage()...), n.endText()...)
	// Calls end here only, because the arguments of parallel calls may interleave to the last
	// chunk.
	predicted := make([][]agui.Event, len(n.calls))
	for i, call := range n.calls {
		predicted[i] = call.endPrediction()
	}
	result, err := n.result() // it has the predicted values
	if err != nil {
		return runs.ModelAnswer{}, err
	}
	for i, call := range n.calls {
		events = append(events, predicted[i]...)
		if slices.Contains(result.ShownCalls, call.id) { // the log does not have its beginning
			events = append(events, ShowCall(call.message(), n.messageID)...)
		} else {
			events = append(events, &agui.ToolCallEnd{ToolCallID: call.id})
		}
	}
	incomplete, err := n.incompleteAnswer()
	if err != nil {
		return runs.ModelAnswer{}, err
	}
	events = append(events, incomplete...)
	n.Answer.Seq, err = n.attempt.Finish(ctx, result, events...)
	return n.Answer, err
}

// result returns the result of the step, and fills in Answer. The messages and arguments are for
// the log; Answer has IDs, names of offered tools, and what the workflow decides by.
func (n *Narrator) result() (*stream.Result, error) {
	result := &stream.Result{Scope: n.Scope, Visibility: n.Visibility}
	message := agui.Message{ID: n.messageID, Role: agui.RoleAssistant}
	if n.text.Len() > 0 {
		message.Content = agui.TextContent(n.text.String())
	}
	for i, call := range n.calls {
		message.ToolCalls = append(message.ToolCalls, call.message())
		if result.ProviderIDs == nil {
			result.ProviderIDs = map[string]string{}
		}
		result.ProviderIDs[call.id] = call.providerID
		if predicted := n.predict.undo(call); predicted != nil {
			if result.Predicted == nil {
				result.Predicted = map[string][]stream.Predicted{}
			}
			result.Predicted[call.id] = predicted
		}
		c := n.workflowCall(call)
		n.markSubagent(call, &c)
		if c.Client || c.Approval != nil {
			n.Answer.InterruptCount++
		}
		if c.Approval != nil && n.Visibility != stream.VisibleToAll {
			result.ShownCalls = append(result.ShownCalls, call.id)
		}
		if c.HasQueueOrSequence() {
			n.Answer.QueuedOrSequencedCount++
		}
		// After runs.MaxCalls calls or runs.MaxInterrupts interrupts, further calls are not in
		// Answer.Calls, and CallCount has the number of all calls. The workflow identifies those
		// calls by their index; a run with too many interrupts ends.
		if n.Answer.CallCount == 0 && len(n.Answer.Calls) < runs.MaxCalls && n.Answer.InterruptCount <= runs.MaxInterrupts {
			n.Answer.Calls = append(n.Answer.Calls, c)
			n.markHandoff(call, c, i)
		} else {
			n.Answer.CallCount = len(n.calls)
		}
	}
	result.TenantAgents = n.tenantAgents()
	if n.text.Len() > 0 || len(n.calls) > 0 {
		n.Answer.MessageID = n.messageID
	}
	// The conversation has the messages in the order in which clients saw them begin.
	for _, id := range n.messageIDs {
		result.Messages = append(result.Messages, n.withID(id, message))
	}
	err := n.Output.Check(n.text.String(), &n.Answer, result)
	if err != nil {
		return nil, err
	}
	result.Answer, err = n.encode()
	return result, err
}

// roomForSeq is how many bytes of the payload are left for Answer.Seq, which is set after the
// encoding.
const roomForSeq = 64

// encode encodes Answer for the done record. The record and the workflow must have the same answer,
// so an answer that does not fit into a payload loses its calls here, and keeps their number.
func (n *Narrator) encode() (json.RawMessage, error) {
	encoded, err := json.Marshal(n.Answer)
	if err == nil && len(encoded) > runs.MaxPayload-roomForSeq {
		n.Answer.Calls, n.Answer.Subagents, n.Answer.Handoff, n.Answer.CallCount = nil, nil, nil, len(n.calls)
		encoded, err = json.Marshal(n.Answer)
	}
	if err != nil {
		return nil, fmt.Errorf("narration: encode answer: %w", err)
	}
	return encoded, nil
}

// workflowCall returns a call as the workflow knows it: where it is made, and whether it is an
// interrupt. Only tools that were offered are gated; a name that was made up gets an error as its
// result.
func (n *Narrator) workflowCall(c *toolCall) runs.Call {
	call := runs.Call{ID: c.id, Tool: n.toolName(c.name)}
	n.setQueueAndSequence(&call)
	switch {
	case call.Tool != "" && n.Gate != nil:
		call.Approval = n.Gate(c.name, c.arguments.String())
	case call.Tool == "":
		call.Client = slices.ContainsFunc(n.Clients, func(t llm.Tool) bool { return t.Name == c.name })
		call.ChangesState = call.Client && n.State.ChangedBy(c.name)
	}
	return call
}

// withID returns the message with an ID that has begun: the answer, a reasoning message, or an
// activity. An activity is a placeholder: snapshots take its content from the events.
func (n *Narrator) withID(id string, answer agui.Message) agui.Message {
	if id == n.messageID {
		return answer
	}
	for _, thought := range n.thinking.blocks {
		if thought.id == id {
			return thought.message()
		}
	}
	return agui.Message{ID: id, Role: agui.RoleActivity, Content: agui.ObjectContent(json.RawMessage("{}"))}
}

// toolName returns the name of a tool that the workflow may know; "" = the name was not offered.
func (n *Narrator) toolName(tool string) string {
	if slices.Contains(n.names, tool) {
		return tool
	}
	return ""
}

// Propose makes the message of a step that no model writes: one tool call of the tool step, the
// approval or the limit. It emits nothing. It returns the ID of the call, the events that show it,
// and the result, which the caller writes together in one record. Answer has the call. Call it
// once, instead of Add and Finish.
func (n *Narrator) Propose(tool, arguments string) (callID string, events []agui.Event, result *stream.Result, err error) {
	call := &toolCall{id: n.run.Identify("call", n.step+"/0"), name: tool}
	call.providerID = call.id
	call.arguments.WriteString(arguments)
	n.calls, n.messageIDs = []*toolCall{call}, []string{n.messageID}
	if result, err = n.result(); err != nil {
		return "", nil, nil, err
	}
	return call.id, []agui.Event{
		&agui.ToolCallStart{ToolCallID: call.id, ToolCallName: tool, ParentMessageID: n.messageID},
		&agui.ToolCallArgs{ToolCallID: call.id, Delta: arguments},
		&agui.ToolCallEnd{ToolCallID: call.id},
	}, result, nil
}

// Predict sets the predictions of the agent: members of the state that follow arguments of tool
// calls while the model writes them. state is the state before the model call.
func (n *Narrator) Predict(predictions []agents.Prediction, state json.RawMessage) {
	n.predict.predictions, n.predict.state = predictions, state
}

// OfferOnly makes one name the only one that the workflow may know.
func (n *Narrator) OfferOnly(tool string) { n.names = []string{tool} }
