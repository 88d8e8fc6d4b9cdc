package protobuf

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/perdure/perdure/agui"
)

// body is the content of a message in this encoding: a string, parts or an object, each in a
// separate field. The writer sets at most one of them; none means absent.
type body struct {
	text   *string
	parts  []agui.ContentPart
	object json.RawMessage
}

// bodyOf returns the body of a content, without the parts that this encoding cannot represent.
func bodyOf(c agui.Content) body {
	switch {
	case c.IsText():
		return body{text: new(c.Text())}
	case c.Object() != nil:
		return body{object: c.Object()}
	default:
		return body{parts: slices.DeleteFunc(slices.Clone(c.Parts()), unwritable)}
	}
}

// content returns the content that a reader has found. The flags are the forms that the message's
// role allows besides text. Where parts are allowed, a missing content is an empty list of parts.
// It fails for several forms, and for one that is not allowed.
func (b body) content(mayHaveParts, mayHaveObject bool) (agui.Content, error) {
	b.parts = slices.DeleteFunc(b.parts, unnamed)
	forms := 0
	for _, there := range []bool{b.text != nil, len(b.parts) > 0, b.object != nil} {
		if there {
			forms++
		}
	}
	switch {
	case forms > 1:
		return agui.Content{}, errors.New("more than one form of content")
	case len(b.parts) > 0 && !mayHaveParts, b.object != nil != mayHaveObject:
		return agui.Content{}, errors.New("the content does not fit the role")
	case b.text != nil:
		return agui.TextContent(*b.text), nil
	case mayHaveObject:
		return agui.ObjectContent(b.object), nil
	case mayHaveParts:
		return agui.PartsContent(b.parts), nil
	default:
		return agui.Content{}, nil
	}
}

// roles are the roles of this version of the protocol.
var roles = []agui.Role{
	agui.RoleDeveloper, agui.RoleSystem, agui.RoleAssistant, agui.RoleUser, agui.RoleTool, agui.RoleActivity, agui.RoleReasoning,
}

// message shows the fields of Message. All roles share one message type. The fields of other roles
// are empty, so the writer omits them.
func message(w wire, m *agui.Message) {
	b := bodyOf(m.Content)
	w.text(1, &m.ID)
	w.text(2, (*string)(&m.Role))
	w.content(3, &b.text)
	w.text(4, &m.Name)
	listOf(w, 5, &m.ToolCalls, toolCall)
	w.text(6, &m.ToolCallID)
	w.text(7, &m.Error)
	listOf(w, 8, &b.parts, part)
	w.metadata(9, &m.Metadata)
	w.text(10, &m.SubagentRunID)
	w.text(11, &m.EncryptedValue)
	w.text(12, &m.ActivityType)
	// The writer would write an absent object as an empty one.
	if w.reads() || m.Role == agui.RoleActivity {
		w.object(13, &b.object)
	}
	w.text(14, &m.EncryptedValueType)
	// A role of a later version: agui.Strip removes the message from its list.
	if !slices.Contains(roles, m.Role) && m.Role != "" {
		return
	}
	if w.reads() {
		// An empty message takes two bytes on the wire, but much more memory: a small input could
		// claim a large list.
		if m.Role == "" {
			w.fail(errors.New("a message has no role"))
		}
		var err error
		m.Content, err = b.content(m.Role == agui.RoleUser || m.Role == agui.RoleTool, m.Role == agui.RoleActivity)
		if err != nil {
			w.fail(fmt.Errorf("message %q: %w", m.ID, err))
		}
	}
}

// toolCall shows the fields of ToolCall. Its function is a nested message, as in JSON.
func toolCall(w wire, c *agui.ToolCall) {
	w.text(1, &c.ID)
	constant(w, 2, "function")
	w.message(3, true, func(w wire) {
		w.text(1, &c.Name)
		w.text(2, &c.Arguments)
	})
	w.metadata(4, &c.Metadata)
	w.text(5, &c.EncryptedValue)
	w.text(6, &c.EncryptedValueType)
}

// toolCallResult shows the fields of TOOL_CALL_RESULT.
func toolCallResult(w wire, e *agui.ToolCallResult) {
	b := bodyOf(e.Content)
	w.text(2, &e.SubagentRunID)
	w.text(3, &e.MessageID)
	w.text(4, &e.ToolCallID)
	w.content(5, &b.text)
	w.text(6, (*string)(&e.Role))
	listOf(w, 7, &b.parts, part)
	if w.reads() {
		var err error
		if e.Content, err = b.content(true, false); err != nil {
			w.fail(err)
		}
	}
}

var (
	// The index of a type is its field number in the oneof.
	partTypes   = []agui.PartType{1: agui.PartText, agui.PartImage, agui.PartAudio, agui.PartVideo, agui.PartDocument}
	sourceTypes = []agui.SourceType{1: agui.SourceData, agui.SourceURL, agui.SourceFile}
)

// unwritable reports whether a part has a type or source without a field number. Clients ignore
// such parts as well.
func unwritable(p agui.ContentPart) bool {
	return slices.Index(partTypes, p.Type) < 1 || p.Type != agui.PartText && (p.Source == nil || slices.Index(sourceTypes, p.Source.Type) < 1)
}

// unnamed reports whether a part that was read has a type or source of a later version.
func unnamed(p agui.ContentPart) bool {
	return p.Type == "" || p.Source != nil && p.Source.Type == ""
}

// part shows the fields of ContentPart. Each type is a separate message, and a part of text has
// other numbers than one of media.
func part(w wire, p *agui.ContentPart) {
	oneOf(w, len(partTypes), slices.Index(partTypes, p.Type), func(w wire, i int) {
		if w.reads() {
			p.Type = partTypes[i]
		}
		if p.Type == agui.PartText {
			w.text(1, &p.Text)
			w.text(2, &p.ID)
			w.value(3, &p.Metadata)
			return
		}
		// The reader needs a Source to fill. The writer has one, see unwritable.
		w.message(1, true, func(w wire) {
			if p.Source == nil {
				p.Source = new(agui.PartSource)
			}
			source(w, p.Source)
		})
		w.value(2, &p.Metadata)
		w.text(3, &p.ID)
	})
}

// source shows the fields of PartSource. Each type is a separate message.
func source(w wire, s *agui.PartSource) {
	oneOf(w, len(sourceTypes), slices.Index(sourceTypes, s.Type), func(w wire, i int) {
		if w.reads() {
			s.Type = sourceTypes[i]
		}
		w.text(1, &s.Value)
		if s.Type == agui.SourceFile {
			w.text(2, &s.Provider)
			w.text(3, &s.MimeType)
			return
		}
		w.text(2, &s.MimeType)
	})
}

// oneOf shows the arms 1 to count-1 of a oneof. The writer writes the arm known; the reader calls
// fields for the arm that occurs, and fails for several.
func oneOf(w wire, count, known int, fields func(w wire, i int)) {
	if !w.reads() {
		w.message(protowire.Number(known), true, func(w wire) { fields(w, known) }) //nolint:gosec // an index
		return
	}
	found := 0
	for i := 1; i < count; i++ {
		w.message(protowire.Number(i), true, func(w wire) { //nolint:gosec // an index
			if found != 0 {
				w.fail(errors.New("more than one variant of a union"))
				return
			}
			found = i
			fields(w, i)
		})
	}
}
