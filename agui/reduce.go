package agui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxWarnings is the maximum number of warnings that a Reducer keeps.
const maxWarnings = 100

// Reducer computes what a client shows from events: messages and state. It follows the rules of the
// reference client, so both have the same result, byte for byte. It is not safe for concurrent use.
//
// The events should pass a Verifier first: the Reducer does not check their order, and handles an
// invalid order like the reference client. It keeps parts of the events, so an event must not be
// changed after Apply.
type Reducer struct {
	chunks   ChunkExpander
	messages []*Message // in the order of display
	// byID and calls find messages and tool calls by ID. For a duplicate ID they contain the first.
	byID  map[string]*Message
	calls map[string]callAt
	// texts contains the growing texts, so that n deltas take O(n) and not O(n²) time.
	texts map[textKey]*strings.Builder

	state      json.RawMessage
	interrupts []Interrupt // of the last finished run
	warnings   []Warning   // at most maxWarnings
}

// callAt is the position of a tool call. An index stays valid while ToolCalls grows; a pointer
// would not.
type callAt struct {
	message *Message
	index   int
}

// call returns the tool call.
func (c callAt) call() *ToolCall { return &c.message.ToolCalls[c.index] }

// textKey identifies a growing text: that of a message, or the arguments of a tool call.
type textKey struct {
	id   string
	call bool
}

// NewReducer returns a Reducer that starts with the messages and state of a client; a nil state is
// the empty object. It copies the messages.
func NewReducer(messages []Message, state json.RawMessage) *Reducer {
	r := &Reducer{state: state}
	if r.state == nil {
		r.state = json.RawMessage("{}")
	}
	r.messages = make([]*Message, 0, len(messages))
	for _, m := range messages {
		r.messages = append(r.messages, m.clone())
	}
	r.reindex()
	return r
}

// clone copies a message with everything that a Reducer can change.
func (m Message) clone() *Message {
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		m.ToolCalls[i].Metadata = maps.Clone(m.ToolCalls[i].Metadata)
	}
	m.Metadata = maps.Clone(m.Metadata)
	return &m
}

// Messages returns a copy of the messages, in order.
func (r *Reducer) Messages() []Message {
	out := make([]Message, len(r.messages))
	for i, m := range r.messages {
		out[i] = *m.clone()
	}
	return out
}

// State returns a copy of the state, which can be any JSON value.
func (r *Reducer) State() json.RawMessage { return slices.Clone(r.state) }

// Interrupts returns the interrupts of the last finished run. The next finished run replaces them.
func (r *Reducer) Interrupts() []Interrupt { return slices.Clone(r.interrupts) }

// Warnings returns the warnings so far, at most 100.
func (r *Reducer) Warnings() []Warning { return slices.Clone(r.warnings) }

// warn records a warning about a member of an event of type t.
func (r *Reducer) warn(t EventType, pointer, format string, args ...any) {
	if len(r.warnings) < maxWarnings {
		r.warnings = append(r.warnings, Warning{Type: t, Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
	}
}

// Apply applies the next event. It skips what cannot be applied, with a warning, as a client does.
// An error means that a client would abort: an *OrderError for a chunk that belongs to no item, or
// a *DecodeError for a malformed patch.
func (r *Reducer) Apply(e Event) error {
	// The common case needs no slice of events.
	if r.chunks.passes(e) {
		return r.apply(e)
	}
	events, err := r.chunks.Expand(e)
	if err != nil {
		return err
	}
	for _, expanded := range events {
		if err := r.apply(expanded); err != nil {
			return err
		}
	}
	return nil
}

// apply applies an event that is no chunk.
func (r *Reducer) apply(e Event) error {
	switch e := e.(type) {
	case *RunStarted:
		r.startRun(e)
	case *RunFinished:
		r.finishRun(e)
	case *TextMessageStart:
		r.startText(e)
	case *TextMessageContent:
		r.appendText(e, e.MessageID, e.Delta)
	case *TextMessageEnd:
		r.endText(e, e.MessageID)
	case *ReasoningMessageStart:
		r.openMessage(e, Message{ID: e.MessageID, Role: RoleReasoning, Content: TextContent(""), SubagentRunID: e.SubagentRunID})
	case *ReasoningMessageContent:
		r.appendText(e, e.MessageID, e.Delta)
	case *ReasoningMessageEnd:
		r.endText(e, e.MessageID)
	case *ReasoningEncryptedValue:
		r.encrypt(e)
	case *ToolCallStart:
		r.startToolCall(e)
	case *ToolCallArgs:
		r.appendArgs(e)
	case *ToolCallEnd:
		r.endToolCall(e)
	case *ToolCallResult:
		r.insertResult(e)
	case *MessagesSnapshot:
		r.restate(e)
	case *StateSnapshot:
		r.replaceState(e)
	case *StateDelta:
		return r.patchState(e)
	case *ActivitySnapshot:
		r.setActivity(e)
	case *ActivityDelta:
		return r.patchActivity(e)
	}
	return nil
}

// startRun appends the messages of the repeated input that are new.
func (r *Reducer) startRun(e *RunStarted) {
	if concern := versionConcern(e.ProtocolVersion); concern != "" {
		r.warn(e.EventType(), "/protocolVersion", "%s", concern)
	}
	if e.Input == nil {
		return
	}
	for _, m := range e.Input.Messages {
		if r.byID[m.ID] == nil {
			r.add(m.clone())
		}
	}
}

// finishRun stores the interrupts of the run.
func (r *Reducer) finishRun(e *RunFinished) {
	r.interrupts = nil
	if e.Outcome != nil && e.Outcome.Type == OutcomeInterrupt {
		r.interrupts = slices.Clone(e.Outcome.Interrupts)
	}
}

// add appends a message.
func (r *Reducer) add(m *Message) {
	r.messages = append(r.messages, m)
	r.index(m)
}

// index adds a message and its tool calls to byID and calls.
func (r *Reducer) index(m *Message) {
	if r.byID[m.ID] == nil {
		r.byID[m.ID] = m
	}
	for i, c := range m.ToolCalls {
		if _, known := r.calls[c.ID]; !known {
			r.calls[c.ID] = callAt{m, i}
		}
	}
}

// reindex rebuilds byID and calls after messages have been removed or replaced.
func (r *Reducer) reindex() {
	r.byID = make(map[string]*Message, len(r.messages))
	r.calls = make(map[string]callAt)
	r.texts = make(map[textKey]*strings.Builder)
	for _, m := range r.messages {
		r.index(m)
	}
}

// mergeMetadata adds the members of from to into; from takes precedence.
func mergeMetadata(into *Metadata, from Metadata) {
	if from == nil {
		return
	}
	if *into == nil {
		*into = make(Metadata, len(from))
	}
	maps.Copy(*into, from)
}
