package gemini

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// body is the JSON body of streamGenerateContent.
type body struct {
	System   *content   `json:"systemInstruction,omitempty"`
	Contents []content  `json:"contents"`
	Tools    []tools    `json:"tools,omitempty"`
	Config   *genConfig `json:"generationConfig,omitempty"`
}

// tools is a set of functions. A request has at most one set.
type tools struct {
	Functions []function `json:"functionDeclarations"`
}

// function is the declaration of a tool.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"` // unchanged JSON Schema
}

// genConfig is the generationConfig object: the options of the completion.
type genConfig struct {
	Temperature     *float64        `json:"temperature,omitempty"`
	MaxOutputTokens *int            `json:"maxOutputTokens,omitempty"`
	Thinking        *thinkingConfig `json:"thinkingConfig,omitempty"`
	MIME            string          `json:"responseMimeType,omitempty"` // set with Schema
	Schema          json.RawMessage `json:"responseJsonSchema,omitempty"`
}

// empty reports whether no option is set; the member is then omitted.
func (c *genConfig) empty() bool {
	return c.Temperature == nil && c.MaxOutputTokens == nil && c.Thinking == nil && c.Schema == nil
}

// body converts a request to the body of the API. It fails if the parameters of a tool are not
// JSON.
func (m *Model) body(req *llm.Request) (*body, error) {
	b := &body{System: system(req.Messages), Contents: m.contents(req)}
	config := genConfig{Temperature: req.Temperature, MaxOutputTokens: req.MaxOutputTokens, Thinking: generationOf(req.Model).thinking(req.ReasoningEffort)}
	if config.Schema = m.schemaOf(req); config.Schema != nil {
		config.MIME = "application/json"
	}
	if !config.empty() {
		b.Config = &config
	}
	for _, tool := range req.Tools {
		if len(tool.Parameters) > 0 && !json.Valid(tool.Parameters) {
			return nil, &llm.Error{Code: llm.CodeInvalidRequest, Message: fmt.Sprintf("the parameters of tool %.64q are not JSON", tool.Name)}
		}
		if b.Tools == nil {
			b.Tools = make([]tools, 1)
		}
		b.Tools[0].Functions = append(b.Tools[0].Functions, function{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters})
	}
	return b, nil
}

// system returns the text of all system messages, or nil. The API has one system instruction, so
// position in the conversation is lost.
func system(messages []llm.Message) *content {
	var c content
	for _, message := range messages {
		if text := message.Text(); message.Role == llm.RoleSystem && !wire.Blank(text) {
			c.Parts = append(c.Parts, part{Text: &text})
		}
	}
	if len(c.Parts) == 0 {
		return nil
	}
	return &c
}
