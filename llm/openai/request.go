package openai

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// params converts a request to the parameters of Chat Completions. It fails if the parameters of a
// tool are not JSON.
func (m *Model) params(req *llm.Request) (openai.ChatCompletionNewParams, error) {
	params := openai.ChatCompletionNewParams{
		Model:           req.Model,
		Messages:        m.messages(req.Messages),
		ReasoningEffort: shared.ReasoningEffort(req.ReasoningEffort),
		StreamOptions:   openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	if req.Temperature != nil {
		params.Temperature = param.NewOpt(*req.Temperature)
	}
	if f := m.formatOf(req); f != nil {
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: formatName, Strict: param.NewOpt(f.strict), Schema: f.schema},
		}
	}
	if req.MaxOutputTokens != nil {
		// The member's name depends on the server, see [Config.MaxTokensField].
		params.SetExtraFields(map[string]any{m.config.MaxTokensField: *req.MaxOutputTokens})
	}
	if req.ParallelToolCalls != nil && len(req.Tools) > 0 {
		params.ParallelToolCalls = param.NewOpt(*req.ParallelToolCalls)
	}
	for _, tool := range req.Tools {
		definition, err := function(tool)
		if err != nil {
			return params, err
		}
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(definition))
	}
	return params, nil
}

// function returns the definition of a tool. The schema is set as a raw extra field, because the
// SDK's typed field is a map, which would change its member order.
func function(tool llm.Tool) (shared.FunctionDefinitionParam, error) {
	definition := shared.FunctionDefinitionParam{Name: tool.Name}
	if tool.Description != "" {
		definition.Description = param.NewOpt(tool.Description)
	}
	if len(tool.Parameters) == 0 {
		return definition, nil
	}
	if !json.Valid(tool.Parameters) {
		return definition, &llm.Error{Code: llm.CodeInvalidRequest, Message: fmt.Sprintf("the parameters of tool %.64q are not JSON", tool.Name)}
	}
	definition.SetExtraFields(map[string]any{"parameters": tool.Parameters})
	return definition, nil
}

// messages converts the conversation. Reasoning is included only in the current turn.
func (m *Model) messages(messages []llm.Message) []openai.ChatCompletionMessageParamUnion {
	turn := turnOf(messages)
	params := make([]openai.ChatCompletionMessageParamUnion, 0, len(messages))
	for i, message := range messages {
		switch message.Role {
		case llm.RoleSystem:
			params = append(params, system(message))
		case llm.RoleUser:
			params = appendUser(params, message)
		case llm.RoleAssistant:
			params = m.appendAssistant(params, message, i > turn)
		case llm.RoleTool:
			params = append(params, openai.ToolMessage(message.Text(), message.ToolCallID))
		}
	}
	return params
}

// turnOf returns the index of the last user message, which begins the current turn; 0 if there is
// none.
func turnOf(messages []llm.Message) int {
	turn := 0
	for i, message := range messages {
		if message.Role == llm.RoleUser {
			turn = i
		}
	}
	return turn
}

// system converts a system message. It keeps its position in the conversation.
func system(message llm.Message) openai.ChatCompletionMessageParamUnion {
	union := openai.SystemMessage(message.Text())
	union.OfSystem.Name = name(message)
	return union
}

// appendUser converts a user message. It omits a message without supported content, which servers
// would reject.
func appendUser(params []openai.ChatCompletionMessageParamUnion, message llm.Message) []openai.ChatCompletionMessageParamUnion {
	parts := contentParts(message.Parts)
	if len(parts) == 0 {
		return params
	}
	union := openai.UserMessage(parts)
	if len(parts) == 1 && parts[0].OfText != nil {
		// A string, not a list of parts: every server supports that form.
		union = openai.UserMessage(parts[0].OfText.Text)
	}
	union.OfUser.Name = name(message)
	return append(params, union)
}

// appendAssistant converts an assistant message. It omits a message with neither text nor tool
// calls, which servers would reject. inTurn adds the reasoning that led to the calls.
func (m *Model) appendAssistant(params []openai.ChatCompletionMessageParamUnion, message llm.Message, inTurn bool) []openai.ChatCompletionMessageParamUnion {
	text := message.Text()
	if text == "" && len(message.ToolCalls) == 0 {
		return params
	}
	assistant := &openai.ChatCompletionAssistantMessageParam{Name: name(message)}
	if text != "" {
		assistant.Content.OfString = param.NewOpt(text)
	}
	for _, call := range message.ToolCalls {
		assistant.ToolCalls = append(assistant.ToolCalls, toolCall(call))
	}
	if inTurn && len(message.ToolCalls) > 0 {
		if fields := m.reasoningFields(message); len(fields) > 0 {
			assistant.SetExtraFields(fields)
		}
	}
	return append(params, openai.ChatCompletionMessageParamUnion{OfAssistant: assistant})
}

// reasoningFields returns the members with the reasoning of a message, for the server that produced
// it. Models that reason between tool calls require it until the turn ends.
func (m *Model) reasoningFields(message llm.Message) map[string]any {
	fields := map[string]any{}
	for _, block := range message.Reasoning {
		var member string
		if block.Provider != m.config.Provider || json.Unmarshal(block.Data, &member) != nil {
			continue
		}
		for _, known := range reasoningMembers {
			if member == known {
				before, _ := fields[member].(string)
				fields[member] = before + block.Text
			}
		}
	}
	return fields
}

// toolCall converts a tool call. The ID is sent unchanged. Compatible servers parse the arguments,
// and refuse a request with incomplete JSON.
func toolCall(call llm.ToolCall) openai.ChatCompletionMessageToolCallUnionParam {
	return openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
		ID:       call.ID,
		Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: call.Name, Arguments: string(wire.Object(call.Arguments))},
	}}
}

// validName matches the participant names that the API accepts. It rejects a request with another
// name.
var validName = regexp.MustCompile(`^[^\s<|\\/>]{1,64}$`)

// name returns the participant's name of a message, omitted if it is empty or invalid.
func name(message llm.Message) param.Opt[string] {
	if !validName.MatchString(message.Name) {
		return param.Opt[string]{}
	}
	return param.NewOpt(message.Name)
}
