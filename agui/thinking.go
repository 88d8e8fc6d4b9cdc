package agui

import (
	"strconv"
	"strings"
)

// ThinkingUpgrade turns the THINKING_* events, which left the protocol with 1.0, into the
// REASONING_* events that took their place, and passes all others. The old ones have no ids: theirs
// are made from the run's id and a count, so that the same stream always gets the same ones. The
// title of THINKING_START has no successor and is lost. The zero value is ready. It is not safe for
// concurrent use.
type ThinkingUpgrade struct {
	run           string
	count         int
	span, message string
}

const thinkingPrefix = "THINKING_"

// Upgrade returns what e stands for now, with a warning if that is something else. An error is a
// *DecodeError for an event whose members do not fit its successor.
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

// successor names the new type, and the span or message that the event is about. What goes on
// without having begun gets an id of its own, and is refused for that like any other.
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

func (u *ThinkingUpgrade) mint() string {
	u.count++
	return "thinking-" + u.run + "-" + strconv.Itoa(u.count)
}

func (u *ThinkingUpgrade) known(id string) string {
	if id == "" {
		return u.mint()
	}
	return id
}

// renamed rewrites an encoded event under another type and id.
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
