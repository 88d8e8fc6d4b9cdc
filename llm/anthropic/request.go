package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// params converts a request to the API's parameters. It fails if the parameters of a tool are not
// JSON.
func (m *Model) params(req *llm.Request) (anthropic.MessageNewParams, error) {
	params := anthropic.MessageNewParams{
		Model:     req.Model,
		MaxTokens: int64(maxTokens(req)),
		System:    system(req.Messages),
		Messages:  m.messages(req.Messages),
	}
	if req.Temperature != nil {
		params.Temperature = param.NewOpt(*req.Temperature)
	}
	if req.ParallelToolCalls != nil && len(req.Tools) > 0 {
		params.ToolChoice.OfAuto = &anthropic.ToolChoiceAutoParam{DisableParallelToolUse: param.NewOpt(!*req.ParallelToolCalls)}
	}
	for _, tool := range req.Tools {
		definition, err := definition(tool)
		if err != nil {
			return params, err
		}
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: definition})
	}
	// think and cache read what is set above: the model, max_tokens, tools and messages.
	think(&params, req.ReasoningEffort)
	// The schema is a raw extra field, see definition.
	if schema := m.schemaOf(req); schema != nil {
		params.OutputConfig.Format.SetExtraFields(map[string]any{"schema": schema})
	}
	cache(&params)
	return params, nil
}

// maxTokens returns the value of max_tokens, which the API requires.
func maxTokens(req *llm.Request) int {
	if req.MaxOutputTokens != nil {
		return *req.MaxOutputTokens
	}
	return DefaultMaxTokens(req.Model)
}

// system returns the text of all system messages. They become the system field, wherever they are
// in the conversation, because not every model accepts system messages among the others.
func system(messages []llm.Message) []anthropic.TextBlockParam {
	var blocks []anthropic.TextBlockParam
	for _, message := range messages {
		if text := message.Text(); message.Role == llm.RoleSystem && !wire.Blank(text) {
			blocks = append(blocks, anthropic.TextBlockParam{Text: text})
		}
	}
	return blocks
}

// noParameters is the input_schema of a tool without parameters; the API requires the member.
const noParameters = `{"type":"object"}`

// definition returns the definition of a tool. The schema is set as a raw extra field, because the
// SDK's typed field would change its member order.
func definition(tool llm.Tool) (*anthropic.ToolParam, error) {
	definition := &anthropic.ToolParam{Name: tool.Name}
	if tool.Description != "" {
		definition.Description = param.NewOpt(tool.Description)
	}
	schema := tool.Parameters
	if len(schema) == 0 {
		schema = json.RawMessage(noParameters)
	}
	if !json.Valid(schema) {
		return nil, &llm.Error{Code: llm.CodeInvalidRequest, Message: fmt.Sprintf("the parameters of tool %.64q are not JSON", tool.Name)}
	}
	definition.SetExtraFields(map[string]any{"input_schema": schema})
	return definition, nil
}
