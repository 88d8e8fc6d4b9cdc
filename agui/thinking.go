package agui

import (
	"strconv"
	"strings"
)

// ThinkingUpgrade converts the THINKING_* events of protocol versions before 1.0 to the REASONING_*
// events that replaced them. It passes all other events unchanged. The old events have no IDs.
// ThinkingUpgrade derives IDs from the run's ID and a counter, so the same stream always gets the
// same IDs. The title of THINKING_START has no equivalent and is lost. The zero value is ready to
// use. It is not safe for concurrent use.
type ThinkingUpgrade struct {
	run           string // ID of the current run
	count         int    // IDs generated in this run
	span, message string // IDs of the last ones; "" = none in this run
}

// thinkingPrefix is the prefix of the retired event types.
const thinkingPrefix = "THINKING_"

// Upgrade returns e, or the event that replaces it and a warning. The error is a *DecodeError for
// an event whose members are invalid in its replacement.
func (u *ThinkingUpgrade) Upgrade(e Event) (Event, []Warning, error) {
	if started, ok := e.(*RunStarted); ok {
		*u = ThinkingUpgrade{run: started.RunID}
		return e, nil, nil
	}
	old, ok := e.(*UnknownEvent)
	if !ok || !strings.HasPrefix(string(old.Type), thinkingPrefix) {
		return e, nil, nil
	}
	successor, id := u.successor(old.Type)
	if successor == "" {
		return e, nil, nil
	}
	raw, err := Encode(old)
	if err != nil {
		return nil, nil, err
	}
	next, err := Decode(renamed(raw, successor, id))
	if err != nil {
		return nil, nil, err
	}
	delete(next.Base().Unknown, "title")
	if len(next.Base().Unknown) == 0 {
		next.Base().Unknown = nil
	}
	return next, []Warning{{Type: old.Type, Detail: "retired, taken for " + string(successor)}}, nil
}

// successor returns the new type of an event, and the ID of its span or message. It returns "" for
// an unknown type. An event that continues a span or message without a start gets a new ID. A
// Verifier then rejects it like any other event of an item that is not open.
func (u *ThinkingUpgrade) successor(old EventType) (EventType, string) {
	switch old {
	case thinkingPrefix + "START":
		u.span = u.mint()
		return EventReasoningStart, u.span
	case thinkingPrefix + "END":
		return EventReasoningEnd, u.known(u.span)
	case thinkingPrefix + "TEXT_MESSAGE_START":
		u.message = u.mint()
		return EventReasoningMessageStart, u.message
	case thinkingPrefix + "TEXT_MESSAGE_CONTENT":
		return EventReasoningMessageContent, u.known(u.message)
	case thinkingPrefix + "TEXT_MESSAGE_END":
		return EventReasoningMessageEnd, u.known(u.message)
	}
	return "", ""
}

// mint returns a new ID.
func (u *ThinkingUpgrade) mint() string {
	u.count++
	return "thinking-" + u.run + "-" + strconv.Itoa(u.count)
}

// known returns id, or a new ID if it is empty.
func (u *ThinkingUpgrade) known(id string) string {
	if id == "" {
		return u.mint()
	}
	return id
}

// renamed returns the encoded event raw with another type and message ID. Only
// REASONING_MESSAGE_START has a role.
func renamed(raw []byte, t EventType, id string) []byte {
	out := append(appendString([]byte(`{"type":`), string(t)), `,"messageId":`...)
	out = appendString(out, id)
	if t == EventReasoningMessageStart {
		out = append(out, `,"role":"reasoning"`...)
	}
	for _, m := range appendMembers(nil, raw) {
		switch string(m.name) {
		case "type", "messageId", "role":
			continue
		}
		out = append(appendString(append(out, ','), string(m.name)), ':')
		out = append(out, m.value...)
	}
	return append(out, '}')
}
