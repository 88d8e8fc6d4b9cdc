package gemini

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// content is one turn: of the "user", with the results of tools, or of the "model".
type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// part is a piece of a turn. Apart from the marks on it, one member is set.
type part struct {
	Text             *string           `json:"text,omitempty"`
	InlineData       *blob             `json:"inlineData,omitempty"`
	FileData         *file             `json:"fileData,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`
	Thought          bool              `json:"thought,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"`
}

// blob is inline media.
type blob struct {
	MIMEType    string `json:"mimeType"`
	Data        string `json:"data"`
	DisplayName string `json:"displayName,omitempty"` // in results of tools only
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
	Args json.RawMessage `json:"args"`
}

// functionResponse is the result of a tool call.
type functionResponse struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
	Parts    []part            `json:"parts,omitempty"` // inlineData only
}

// contents returns the turns of the conversation. Answers in a row are one turn,
// and so are the results of one turn's calls, which must be together; other
// messages of the user stay apart.
func (m *Model) contents(req *llm.Request) []content {
	model := generationOf(req.Model)
	messages, names := inOrder(req.Messages)
	turn := 0 // where the turn begins that the model is in
	for i, message := range messages {
		if message.Role == llm.RoleUser {
			turn = i
		}
	}
	contents := []content{}
	for i, message := range messages {
		switch message.Role {
		case llm.RoleUser:
			contents = appendContent(contents, "user", userParts(message.Parts), false)
		case llm.RoleTool:
			result := []part{{FunctionResponse: response(message, names[message.ToolCallID], model)}}
			contents = appendContent(contents, "user", result, i > 0 && messages[i-1].Role == llm.RoleTool)
		case llm.RoleAssistant:
			parts := m.modelParts(message)
			if model.signs() && i > turn {
				sign(parts)
			}
			if len(contents) == 0 && len(parts) > 0 {
				opening := wire.Opening
				contents = appendContent(contents, "user", []part{{Text: &opening}}, false)
			}
			contents = appendContent(contents, "model", parts, true)
		}
	}
	return contents
}

// inOrder returns the messages with the results of tools in the order of their
// calls, not that in which tools were done, and the names of the calls by id.
func inOrder(messages []llm.Message) (ordered []llm.Message, names map[string]string) {
	names = map[string]string{}
	place := map[string]int{}
	ordered = slices.Clone(messages)
	results := 0 // before the message, in a row
	for i, message := range ordered {
		for _, call := range message.ToolCalls {
			names[call.ID], place[call.ID] = call.Name, len(place)
		}
		if message.Role != llm.RoleTool {
			results = 0
			continue
		}
		results++
		slices.SortStableFunc(ordered[i+1-results:i+1], func(a, b llm.Message) int {
			return cmp.Compare(place[a.ToolCallID], place[b.ToolCallID])
		})
	}
	return ordered, names
}

// appendContent appends parts, to the last turn if they are to join it and it
// is the role's. A message of which nothing can be sent is left out.
func appendContent(contents []content, role string, parts []part, join bool) []content {
	if len(parts) == 0 {
		return contents
	}
	if last := len(contents) - 1; join && last >= 0 && contents[last].Role == role {
		contents[last].Parts = append(contents[last].Parts, parts...)
		return contents
	}
	return append(contents, content{Role: role, Parts: parts})
}

// response returns the result of a call. The API finds the call by name and order,
// or by id.
func response(message llm.Message, name string, model generation) *functionResponse {
	kind := "output"
	if message.IsError {
		kind = "error"
	}
	r := &functionResponse{ID: message.ToolCallID, Name: wire.Nameable(name), Response: map[string]string{kind: message.Text()}}
	if !model.signs() {
		return r // older models take text alone
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
