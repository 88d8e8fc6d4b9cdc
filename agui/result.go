package agui

import (
	"bytes"
	"encoding/json"
)

// DecodeToolResult reads what came of a tool call where it is said by itself, and not in an input:
// the members toolCallId, content and error of a tool message, nil for one that is absent. The
// message has the call's id. An error is a *DecodeError that points at the member.
func DecodeToolResult(toolCallID, content, failure json.RawMessage) (*Message, error) {
	members := []byte(`{"role":"tool","id":"-"`)
	for _, m := range []struct {
		name  string
		value json.RawMessage
	}{{"toolCallId", toolCallID}, {"content", content}, {"error", failure}} {
		if len(m.value) > 0 && !bytes.Equal(m.value, []byte("null")) {
			members = append(members, `,"`+m.name+`":`...)
			members = append(members, m.value...)
		}
	}
	m := new(Message)
	if err := unmarshal(append(members, '}'), m); err != nil {
		return nil, err
	}
	if m.ToolCallID == "" {
		return nil, &DecodeError{Pointer: "/toolCallId", Detail: "must not be empty"}
	}
	m.ID = m.ToolCallID
	return m, nil
}
