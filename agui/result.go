package agui

import (
	"bytes"
	"encoding/json"
)

// DecodeToolResult decodes the result of a tool call that is received separately from a
// RunAgentInput. The arguments are the members toolCallId, content and error of a tool message; nil
// means absent. The ID of the message is that of the call. The error is a *DecodeError that points
// to the member.
func DecodeToolResult(toolCallID, content, failure json.RawMessage) (*Message, error) {
	// The ID is a placeholder, because the decoder requires one.
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
