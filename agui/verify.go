package agui

import (
	"fmt"
	"slices"
	"strings"
)

// Verifier checks that a stream has an order that the reference client accepts, over any number of
// consecutive runs. The zero value is ready for a stream from its beginning. It is not safe for
// concurrent use.
//
// A rejected event leaves the Verifier unchanged (except for chunks), so a producer can check an
// event and send another one instead. The Verifier does not check the content of a single event,
// which Encode and Decode do. It checks neither whether a run ends at all, nor whether IDs match
// the request.
type Verifier struct {
	chunks ChunkExpander // expands chunks before the check
	phase  phase
	open   []OpenItem // in the order of opening
	// announced are the subagents that were started in this run, open or closed.
	announced map[string]bool
	// owners are the owners of all items that this run has mentioned; "" = the parent agent.
	owners map[entity]string
	// met are the items that a resumed stream has opened or continued so far. It is nil for a run
	// that is seen from its beginning.
	met map[OpenItem]bool
}

// ResumedVerifier returns a Verifier for a stream that starts inside a run, after a cursor. It takes
// an item that such a stream continues or closes without opening it for one that was opened before
// the cursor.
func ResumedVerifier() *Verifier {
	return &Verifier{
		phase: phaseRunning, met: make(map[OpenItem]bool),
		announced: make(map[string]bool), owners: make(map[entity]string),
	}
}

// recall opens an item that a resumed stream continues without having opened it: it was opened
// before the start of the stream. Each item is recalled once, so an event after its end is still an
// error. It reports whether it opened the item.
func (v *Verifier) recall(item OpenItem) (recalled bool) {
	if v.met == nil || v.met[item.key()] {
		return false
	}
	v.opened(item)
	return true
}

// key returns the identity of an item. Only the identity of a step includes the owner.
func (i OpenItem) key() OpenItem {
	if i.Type != EventStepStarted {
		i.SubagentRunID = ""
	}
	return i
}

// opened adds an open item.
func (v *Verifier) opened(item OpenItem) {
	v.open = append(v.open, item)
	if v.met != nil {
		v.met[item.key()] = true
	}
}

// OpenItem is an item that a run has opened and not closed.
type OpenItem struct {
	// Type is the type of the event that opened the item: TEXT_MESSAGE_START, TOOL_CALL_START,
	// REASONING_START, REASONING_MESSAGE_START, STEP_STARTED or SUBAGENT_STARTED.
	Type EventType
	// ID is the ID of the message, tool call or subagent, or the name of the step.
	ID string
	// SubagentRunID is the owner; "" = the parent agent.
	SubagentRunID string
}

// phase is the position of a stream relative to its runs.
type phase int

const (
	phaseNew      phase = iota // before the first event
	phaseRunning               // inside a run
	phaseFinished              // after RUN_FINISHED
	phaseFailed                // after RUN_ERROR
)

// entity is the key of an owner: an ID in its namespace.
type entity struct {
	space string
	id    string
}

// The namespaces of IDs. Their values appear in error messages.
const (
	spaceMessage   = "message"
	spaceToolCall  = "tool call"
	spaceActivity  = "activity"
	spaceReasoning = "reasoning" // reasoning spans and reasoning messages
)

// Check checks the next event of the stream. The error is an *OrderError. Chunks are expanded
// first, and unknown events are ignored.
func (v *Verifier) Check(e Event) error {
	// The common case needs no slice of events.
	if v.chunks.passes(e) {
		return v.check(e)
	}
	events, err := v.chunks.Expand(e)
	if err != nil {
		return err
	}
	for _, expanded := range events {
		if err := v.check(expanded); err != nil {
			return err
		}
	}
	return nil
}

// Open returns the open items in the order of opening. RUN_FINISHED is valid after they are closed;
// the reverse order closes nested items first.
func (v *Verifier) Open() []OpenItem { return slices.Clone(v.open) }

// check checks an event that is no chunk, and records it.
func (v *Verifier) check(e Event) error {
	if err := v.checkPhase(e); err != nil {
		return err
	}
	switch e := e.(type) {
	case *RunStarted:
		v.startRun(e)
	case *RunFinished:
		return v.finishRun()
	case *RunError:
		v.phase, v.open = phaseFailed, nil
	case *TextMessageStart:
		return v.start(e.EventType(), spaceMessage, e.MessageID, e.SubagentRunID)
	case *TextMessageContent:
		return v.continueOpen(e.EventType(), EventTextMessageStart, spaceMessage, e.MessageID, e.SubagentRunID)
	case *TextMessageEnd:
		return v.end(e.EventType(), EventTextMessageStart, spaceMessage, e.MessageID, e.SubagentRunID)
	case *ToolCallStart:
		return v.startToolCall(e)
	case *ToolCallArgs:
		return v.continueOpen(e.EventType(), EventToolCallStart, spaceToolCall, e.ToolCallID, e.SubagentRunID)
	case *ToolCallEnd:
		return v.end(e.EventType(), EventToolCallStart, spaceToolCall, e.ToolCallID, e.SubagentRunID)
	case *ToolCallResult:
		v.owners[entity{spaceMessage, e.MessageID}] = e.SubagentRunID
	case *MessagesSnapshot:
		v.seed(e.Messages, true)
	default:
		return v.checkRest(e)
	}
	return nil
}

// checkRest is the part of check for less frequent events.
func (v *Verifier) checkRest(e Event) error {
	switch e := e.(type) {
	case *StepStarted:
		return v.startStep(e)
	case *StepFinished:
		return v.finishStep(e)
	case *ReasoningStart:
		return v.start(e.EventType(), spaceReasoning, e.MessageID, e.SubagentRunID)
	case *ReasoningEnd:
		return v.end(e.EventType(), EventReasoningStart, spaceReasoning, e.MessageID, e.SubagentRunID)
	case *ReasoningMessageStart:
		return v.start(e.EventType(), spaceReasoning, e.MessageID, e.SubagentRunID)
	case *ReasoningMessageContent:
		return v.continueOpen(e.EventType(), EventReasoningMessageStart, spaceReasoning, e.MessageID, e.SubagentRunID)
	case *ReasoningMessageEnd:
		return v.end(e.EventType(), EventReasoningMessageStart, spaceReasoning, e.MessageID, e.SubagentRunID)
	case *ReasoningEncryptedValue:
		return v.checkOwner(e.EventType(), v.encryptedEntity(e), e.SubagentRunID)
	case *ActivitySnapshot:
		v.ownActivity(e)
	case *ActivityDelta:
		return v.checkOwner(e.EventType(), entity{spaceActivity, e.MessageID}, e.SubagentRunID)
	case *SubagentStarted:
		return v.startSubagent(e)
	case *SubagentFinished:
		return v.endSubagent(e.EventType(), e.SubagentRunID)
	case *SubagentError:
		return v.endSubagent(e.EventType(), e.SubagentRunID)
	}
	return nil
}

// checkPhase checks whether an event of this type may occur in the current phase.
func (v *Verifier) checkPhase(e Event) error {
	t := e.EventType()
	if _, ok := e.(*UnknownEvent); ok {
		return nil
	}
	switch v.phase {
	case phaseNew:
		if t != EventRunStarted && t != EventRunError {
			return &OrderError{RuleFirstEvent, t, "", "the first event must be RUN_STARTED or RUN_ERROR"}
		}
	case phaseRunning:
		if t == EventRunStarted {
			return &OrderError{RuleRunOpen, t, "", "a run is still open"}
		}
	case phaseFinished:
		if t != EventRunStarted && t != EventRunError {
			return &OrderError{RuleAfterTerminal, t, "", "the run has ended with RUN_FINISHED"}
		}
	case phaseFailed:
		if t != EventRunStarted {
			return &OrderError{RuleAfterTerminal, t, "", "the run has ended with RUN_ERROR"}
		}
	}
	return nil
}

// startRun resets everything that belongs to a run.
func (v *Verifier) startRun(e *RunStarted) {
	v.phase = phaseRunning
	v.open, v.met = nil, nil
	v.announced = make(map[string]bool)
	v.owners = make(map[entity]string)
	if e.Input != nil {
		v.seed(e.Input.Messages, false)
	}
}

// finishRun checks that all items are closed.
func (v *Verifier) finishRun() error {
	if len(v.open) == 0 {
		v.phase = phaseFinished
		return nil
	}
	left := make([]string, len(v.open))
	for i, item := range v.open {
		left[i] = string(item.Type) + " " + item.ID
	}
	return &OrderError{RuleOpenAtFinish, EventRunFinished, v.open[0].ID, "still open: " + strings.Join(left, ", ")}
}

// seed records the owners of messages in a snapshot or an input. A snapshot replaces what the
// client has, so it is authoritative. An input in RUN_STARTED is history only.
func (v *Verifier) seed(messages []Message, authoritative bool) {
	for _, m := range messages {
		space := spaceMessage
		switch m.Role {
		case RoleReasoning:
			space = spaceReasoning
		case RoleActivity:
			space = spaceActivity
		}
		v.own(entity{space, m.ID}, m.SubagentRunID, authoritative)
		for _, call := range m.ToolCalls {
			v.own(entity{spaceToolCall, call.ID}, m.SubagentRunID, authoritative)
		}
	}
}

// own records an owner. The first recorded owner stays, unless replace is set.
func (v *Verifier) own(e entity, owner string, replace bool) {
	if _, known := v.owners[e]; !known || replace {
		v.owners[e] = owner
	}
}

// ownActivity records the owner of an activity.
func (v *Verifier) ownActivity(e *ActivitySnapshot) {
	replaces := e.Replace == nil || *e.Replace
	v.own(entity{spaceActivity, e.MessageID}, e.SubagentRunID, replaces)
}

// encryptedEntity returns the entity of a REASONING_ENCRYPTED_VALUE. The subtype message can mean a
// text message or a reasoning message.
func (v *Verifier) encryptedEntity(e *ReasoningEncryptedValue) entity {
	if e.Subtype == EncryptedToolCall {
		return entity{spaceToolCall, e.EntityID}
	}
	message := entity{spaceMessage, e.EntityID}
	if _, ok := v.owners[message]; ok {
		return message
	}
	return entity{spaceReasoning, e.EntityID}
}

// checkOwner checks the attribution tag of an event against the owner of its item. No attribution
// is always valid.
func (v *Verifier) checkOwner(t EventType, e entity, tag string) error {
	owner, known := v.owners[e]
	if tag == "" || !known || owner == tag {
		return nil
	}
	return &OrderError{RuleOwner, t, e.id, fmt.Sprintf("is attributed to %s, but the %s belongs to %s", ownerName(tag), e.space, ownerName(owner))}
}

// find returns the index of the open item with that opening type and ID, or -1.
func (v *Verifier) find(t EventType, id string) int {
	return slices.IndexFunc(v.open, func(i OpenItem) bool { return i.ID == id && i.Type == t })
}

// checkNotOpen returns an error if the item is open.
func (v *Verifier) checkNotOpen(t EventType, id string) error {
	if v.find(t, id) >= 0 {
		return &OrderError{RuleAlreadyOpen, t, id, "is open already"}
	}
	return nil
}

// start opens an item whose namespace is space.
func (v *Verifier) start(t EventType, space, id, tag string) error {
	if err := v.checkNotOpen(t, id); err != nil {
		return err
	}
	e := entity{space, id}
	if err := v.checkOwner(t, e, tag); err != nil {
		return err
	}
	v.own(e, tag, false)
	v.push(t, e)
	return nil
}

// push adds an open item with its recorded owner.
func (v *Verifier) push(t EventType, e entity) {
	v.opened(OpenItem{Type: t, ID: e.id, SubagentRunID: v.owners[e]})
}

// startToolCall opens a tool call. It also checks the attribution against the parent message,
// because a call in a message has the owner of the message.
func (v *Verifier) startToolCall(e *ToolCallStart) error {
	if err := v.checkNotOpen(EventToolCallStart, e.ToolCallID); err != nil {
		return err
	}
	parent := entity{spaceMessage, e.ParentMessageID}
	if err := v.checkOwner(EventToolCallStart, parent, e.SubagentRunID); err != nil {
		return err
	}
	owner := e.SubagentRunID
	inherited, hasParent := v.owners[parent]
	if owner == "" {
		owner = inherited
	}
	call := entity{spaceToolCall, e.ToolCallID}
	if before, known := v.owners[call]; known && (owner != "" || hasParent) && before != owner {
		return &OrderError{RuleOwner, EventToolCallStart, e.ToolCallID, fmt.Sprintf("is opened for %s, but belongs to %s", ownerName(owner), ownerName(before))}
	}
	v.own(call, owner, false)
	v.push(EventToolCallStart, call)
	return nil
}

// continueOpen checks an event of type t that continues the item which an event of type opener has
// opened.
func (v *Verifier) continueOpen(t, opener EventType, space, id, tag string) error {
	if v.recall(OpenItem{Type: opener, ID: id, SubagentRunID: tag}) && tag != "" {
		v.own(entity{space, id}, tag, false)
	}
	if v.find(opener, id) < 0 {
		return &OrderError{RuleNotOpen, t, id, "is not open"}
	}
	return v.checkOwner(t, entity{space, id}, tag)
}

// end closes an item, after the checks of continueOpen.
func (v *Verifier) end(t, opener EventType, space, id, tag string) error {
	if err := v.continueOpen(t, opener, space, id, tag); err != nil {
		return err
	}
	i := v.find(opener, id)
	v.open = slices.Delete(v.open, i, i+1)
	return nil
}

// findStep returns the index of an open step by name and owner, or -1. A subagent can have a step
// with the same name as a step of its parent.
func (v *Verifier) findStep(name, owner string) int {
	return slices.Index(v.open, OpenItem{Type: EventStepStarted, ID: name, SubagentRunID: owner})
}

// startStep opens a step.
func (v *Verifier) startStep(e *StepStarted) error {
	if v.findStep(e.StepName, e.SubagentRunID) >= 0 {
		return &OrderError{RuleAlreadyOpen, EventStepStarted, e.StepName, "is open already for " + ownerName(e.SubagentRunID)}
	}
	v.opened(OpenItem{Type: EventStepStarted, ID: e.StepName, SubagentRunID: e.SubagentRunID})
	return nil
}

// finishStep closes a step.
func (v *Verifier) finishStep(e *StepFinished) error {
	v.recall(OpenItem{Type: EventStepStarted, ID: e.StepName, SubagentRunID: e.SubagentRunID})
	i := v.findStep(e.StepName, e.SubagentRunID)
	if i >= 0 {
		v.open = slices.Delete(v.open, i, i+1)
		return nil
	}
	if other := v.find(EventStepStarted, e.StepName); other >= 0 {
		return &OrderError{RuleOwner, EventStepFinished, e.StepName, fmt.Sprintf("is finished by %s, but open under %s", ownerName(e.SubagentRunID), ownerName(v.open[other].SubagentRunID))}
	}
	return &OrderError{RuleNotOpen, EventStepFinished, e.StepName, "is not open"}
}

// startSubagent opens a subagent invocation. In a resumed stream, the parent may have been
// announced before the start of the stream.
func (v *Verifier) startSubagent(e *SubagentStarted) error {
	id := e.SubagentRunID
	if err := v.checkNotOpen(EventSubagentStarted, id); err != nil {
		return err
	}
	if v.announced[id] {
		return &OrderError{RuleSubagentReused, EventSubagentStarted, id, "was used in this run already"}
	}
	if e.ParentSubagentRunID != "" && !v.announced[e.ParentSubagentRunID] && v.met == nil {
		return &OrderError{RuleUnknownParent, EventSubagentStarted, id, "its parent " + e.ParentSubagentRunID + " was not started in this run"}
	}
	v.announced[id] = true
	v.opened(OpenItem{Type: EventSubagentStarted, ID: id, SubagentRunID: e.ParentSubagentRunID})
	return nil
}

// endSubagent closes a subagent invocation.
func (v *Verifier) endSubagent(t EventType, id string) error {
	v.recall(OpenItem{Type: EventSubagentStarted, ID: id})
	i := v.find(EventSubagentStarted, id)
	if i < 0 {
		return &OrderError{RuleNotOpen, t, id, "is not open"}
	}
	v.open = slices.Delete(v.open, i, i+1)
	return nil
}
