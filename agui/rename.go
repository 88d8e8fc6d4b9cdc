package agui

import (
	"encoding/json"
	"strings"
)

// RenameIDs replaces the IDs of messages, tool calls, subagents and interrupts in an event by the results
// of rename: those of the event itself, of its messages and their tool calls, and of an outcome. It does
// not call rename for "", and leaves the IDs of threads, runs and parts of a content, and all content,
// as they are. It changes e, but no list that e shares with others.
func RenameIDs(e Event, rename func(id string) string) {
	r := renamer(rename)
	e.fields(r)
}

// RenameMessageIDs is RenameIDs for the messages of an input. The result shares no list with messages.
func RenameMessageIDs(messages []Message, rename func(id string) string) []Message {
	renamed := &MessagesSnapshot{Messages: append([]Message(nil), messages...)}
	for i := range renamed.Messages {
		renamed.Messages[i].ToolCalls = append([]ToolCall(nil), renamed.Messages[i].ToolCalls...)
	}
	RenameIDs(renamed, rename)
	return renamed.Messages
}

// renamer is the visitor that implements RenameIDs. Methods without a body visit members without IDs.
type renamer func(id string) string

// text implements visitor.
func (r renamer) text(name string, s *string, _ need) {
	if *s == "" || name == "threadId" || name == "runId" || name == "parentRunId" {
		return
	}
	if name == "id" || strings.HasSuffix(name, "Id") {
		*s = r(*s)
	}
}

// names implements visitor.
func (r renamer) names(name string, l *[]string) {
	if *l == nil || !strings.HasSuffix(name, "Ids") {
		return
	}
	renamed := make([]string, len(*l))
	for i, id := range *l {
		renamed[i] = r(id)
	}
	*l = renamed
}

// list implements visitor.
func (r renamer) list(_ string, l sequence, _ need) {
	for i := range l.len() {
		l.at(i).fields(r)
	}
}

// object implements visitor.
func (r renamer) object(_ string, o slot, _ need) {
	if f := o.get(); f != nil {
		f.fields(r)
	}
}

func (r renamer) word(string, *string, need, []string)        {}
func (r renamer) variant(string, *string, []string)           {}
func (r renamer) constant(string, string)                     {}
func (r renamer) timestamp(string, *int64)                    {}
func (r renamer) count(string, **int64)                       {}
func (r renamer) flag(string, **bool)                         {}
func (r renamer) raw(string, *json.RawMessage, rawKind)       {}
func (r renamer) metadata(string, *Metadata)                  {}
func (r renamer) content(string, *Content, contentKind, need) {}
func (r renamer) unknown(*map[string]json.RawMessage)         {}
