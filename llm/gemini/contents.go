package gemini

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// content is one turn of the conversation. Its role is "user", also for tool results, or "model". A
// system instruction has no role.
type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// part is a piece of a turn. One of the pointer members is set; Thought and ThoughtSignature
// qualify it.
type part struct {
	Text             *string           `json:"text,omitempty"`
	InlineData       *blob             `json:"inlineData,omitempty"`
	FileData         *file             `json:"fileData,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`
	Thought          bool              `json:"thought,omitempty"` // Text is a thought summary
	ThoughtSignature string            `json:"thoughtSignature,omitempty"`
}

// blob is inline media.
type blob struct {
	MIMEType    string `json:"mimeType"`
	Data        string `json:"data"`                  // base64
	DisplayName string `json:"displayName,omitempty"` // only in tool results
}

// file is media by URL.
type file struct {
	MIMEType string `json:"mimeType,omitempty"`
	URI      string `json:"fileUri"`
}

// functionCall is a tool call.
type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"` // a JSON object
}

// functionResponse is the result of a tool call.
type functionResponse struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`        // "output" or "error", and the text
	Parts    []part            `json:"parts,omitempty"` // only inlineData
}

// contents converts the conversation to turns. Consecutive assistant messages become one turn. So
// do the results of consecutive calls, because the API requires all results of a turn's calls
// together. Other user messages stay separate turns.
func (m *Model) contents(req *llm.Request) []content {
	model := generationOf(req.Model)
	messages, names := inOrder(req.Messages)
	turn := 0 // index of the user message that begins the current turn
	for i, message := range messages {
		if message.Role == llm.RoleUser {
			turn = i
		}
	}
	contents := []content{}
	for i, message := range messages {
		switch message.Role {
		case llm.RoleUser:
			contents = appendTurn(contents, "user", userParts(message.Parts))
		case llm.RoleTool:
			result := []part{{FunctionResponse: response(message, names[message.ToolCallID], model)}}
			if i > 0 && messages[i-1].Role == llm.RoleTool {
				contents = extendTurn(contents, "user", result)
			} else {
				contents = appendTurn(contents, "user", result)
			}
		case llm.RoleAssistant:
			parts := m.modelParts(message)
			if model.signs() && i > turn {
				// The API validates signatures only in the current turn.
				sign(parts)
			}
			if len(contents) == 0 && len(parts) > 0 {
				opening := wire.Opening
				contents = appendTurn(contents, "user", []part{{Text: &opening}})
			}
			contents = extendTurn(contents, "model", parts)
		}
	}
	return contents
}

// inOrder returns the messages with the results of tools sorted by their calls: tools finish in any
// order, but the API matches results of calls without an ID by order. names are the tool names by
// call ID, since a result must repeat the name.
func inOrder(messages []llm.Message) (ordered []llm.Message, names map[string]string) {
	names = map[string]string{}
	indexes := map[string]int{}
	ordered = slices.Clone(messages)
	results := 0 // length of the run of tool messages that ends before the current message
	for i, message := range ordered {
		for _, call := range message.ToolCalls {
			names[call.ID], indexes[call.ID] = call.Name, len(indexes)
		}
		if message.Role != llm.RoleTool {
			results = 0
			continue
		}
		results++
		slices.SortStableFunc(ordered[i+1-results:i+1], func(a, b llm.Message) int {
			return cmp.Compare(indexes[a.ToolCallID], indexes[b.ToolCallID])
		})
	}
	return ordered, names
}

// appendTurn appends parts as a turn. It ignores a message without parts, which the API would
// reject.
func appendTurn(contents []content, role string, parts []part) []content {
	if len(parts) == 0 {
		return contents
	}
	return append(contents, content{Role: role, Parts: parts})
}

// extendTurn appends parts to the last turn if that has the role, and otherwise as a turn.
func extendTurn(contents []content, role string, parts []part) []content {
	if last := len(contents) - 1; last >= 0 && contents[last].Role == role {
		contents[last].Parts = append(contents[last].Parts, parts...)
		return contents
	}
	return appendTurn(contents, role, parts)
}

// response converts a tool message. name is the name of the tool. The API finds the call by ID, or
// by name and order.
func response(message llm.Message, name string, model generation) *functionResponse {
	kind := "output"
	if message.IsError {
		kind = "error"
	}
	r := &functionResponse{ID: message.ToolCallID, Name: wire.Nameable(name), Response: map[string]string{kind: message.Text()}}
	if !model.signs() {
		return r // these models accept only text in results
	}
	for _, p := range message.Parts {
		media, ok := p.(llm.Media)
		if !ok {
			continue
		}
		if sent, ok := mediaPart(media); ok && sent.InlineData != nil {
			sent.InlineData.DisplayName = media.Name
			r.Parts = append(r.Parts, sent)
		}
	}
	return r
}
