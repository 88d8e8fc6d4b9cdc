package agui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxWarnings bounds what a Reducer remembers of a bad stream.
const maxWarnings = 100

// Reducer turns events into what a client shows: messages and state. It
// applies the reference client's rules, so that both agree to the byte on what
// a thread holds. It is not safe for concurrent use.
//
// The reducer expects a stream that a Verifier accepts, does not check it
// again, and does what the client does with one that is not. It keeps parts of
// the events; do not change an event after applying it.
type Reducer struct {
	chunks   ChunkExpander
	messages []*Message
	// byID and calls find messages and tool calls; of several messages with
	// one id they know the first.
	byID  map[string]*Message
	calls map[string]callAt
	// texts are the growing texts, so that n deltas cost O(n) and not O(n²).
	texts map[textKey]*strings.Builder

	state      json.RawMessage
	interrupts []Interrupt
	warnings   []Warning
}

// callAt is a tool call of a message.
type callAt struct {
	message *Message
	index   int
}

func (c callAt) call() *ToolCall { return &c.message.ToolCalls[c.index] }

// textKey identifies a text that grows: a message, or the arguments of a call.
type textKey struct {
	id   string
	call bool
}

// NewReducer returns a reducer that starts from what a client has; nil state
// is the empty object. The messages are copied.
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

// clone copies what the reducer may change.
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

// State returns the state, any JSON value.
func (r *Reducer) State() json.RawMessage { return slices.Clone(r.state) }

// Interrupts returns those of the last finished run; the next one clears them.
func (r *Reducer) Interrupts() []Interrupt { return slices.Clone(r.interrupts) }

// Warnings returns what was tolerated so far: the first 100 warnings.
func (r *Reducer) Warnings() []Warning { return slices.Clone(r.warnings) }

func (r *Reducer) warn(t EventType, pointer, format string, args ...any) {
	if len(r.warnings) < maxWarnings {
		r.warnings = append(r.warnings, Warning{Type: t, Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
	}
}

// Apply takes the next event. What cannot be applied is skipped with a
// warning, as a client does. An error means that a client would give up: an
// *OrderError for a chunk that cannot be placed, a *DecodeError for a patch
// that is malformed.
func (r *Reducer) Apply(e Event) error {
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

func (r *Reducer) finishRun(e *RunFinished) {
	r.interrupts = nil
	if e.Outcome != nil && e.Outcome.Type == OutcomeInterrupt {
		r.interrupts = slices.Clone(e.Outcome.Interrupts)
	}
}

func (r *Reducer) add(m *Message) {
	r.messages = append(r.messages, m)
	r.index(m)
}

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

func (r *Reducer) reindex() {
	r.byID = make(map[string]*Message, len(r.messages))
	r.calls = make(map[string]callAt)
	r.texts = make(map[textKey]*strings.Builder)
	for _, m := range r.messages {
		r.index(m)
	}
}

func mergeMetadata(into *Metadata, from Metadata) {
	if from == nil {
		return
	}
	if *into == nil {
		*into = make(Metadata, len(from))
	}
	maps.Copy(*into, from)
}
