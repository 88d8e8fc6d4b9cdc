package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// withoutReasoning matches OpenAI's models without reasoning. They reject a request with reasoning
// options. The list is complete, because all newer models reason.
var withoutReasoning = regexp.MustCompile(`^(ft:)?(gpt-3|gpt-4|gpt-5-chat|chatgpt-)`)

// params converts a request to the parameters of the Responses API. It fails if the parameters of a
// tool are not JSON.
func (r *Responses) params(req *llm.Request) (responses.ResponseNewParams, error) {
	params := responses.ResponseNewParams{
		Model:     req.Model,
		Input:     responses.ResponseNewParamsInputUnion{OfInputItemList: r.input(req)},
		Reasoning: shared.ReasoningParam{Effort: shared.ReasoningEffort(req.ReasoningEffort)},
		Store:     param.NewOpt(false),
	}
	if !withoutReasoning.MatchString(req.Model) {
		// The response is not stored, so it must contain the encrypted reasoning to be sent back.
		params.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
		params.Reasoning.Summary = shared.ReasoningSummaryAuto
	}
	if req.Temperature != nil {
		params.Temperature = param.NewOpt(*req.Temperature)
	}
	if f := r.formatOf(req); f != nil {
		format := &responses.ResponseFormatTextJSONSchemaConfigParam{Name: formatName, Strict: param.NewOpt(f.strict)}
		format.SetExtraFields(map[string]any{"schema": f.schema}) // raw, see function
		params.Text.Format.OfJSONSchema = format
	}
	if req.MaxOutputTokens != nil {
		params.MaxOutputTokens = param.NewOpt(int64(*req.MaxOutputTokens))
	}
	if req.ParallelToolCalls != nil && len(req.Tools) > 0 {
		params.ParallelToolCalls = param.NewOpt(*req.ParallelToolCalls)
	}
	for _, tool := range req.Tools {
		definition, err := functionTool(tool)
		if err != nil {
			return params, err
		}
		params.Tools = append(params.Tools, responses.ToolUnionParam{OfFunction: definition})
	}
	return params, nil
}

// functionTool returns the definition of a tool. The API's default is strict, which rejects many
// schemas, so strict is set to false. The API requires parameters. The schema is set as a raw extra
// field, see function.
func functionTool(tool llm.Tool) (*responses.FunctionToolParam, error) {
	definition := &responses.FunctionToolParam{Name: tool.Name, Strict: param.NewOpt(false)}
	if tool.Description != "" {
		definition.Description = param.NewOpt(tool.Description)
	}
	parameters := tool.Parameters
	if len(parameters) == 0 {
		parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if !json.Valid(parameters) {
		return nil, &llm.Error{Code: llm.CodeInvalidRequest, Message: fmt.Sprintf("the parameters of tool %.64q are not JSON", tool.Name)}
	}
	definition.SetExtraFields(map[string]any{"parameters": parameters})
	return definition, nil
}

// input converts the conversation to input items. Reasoning is included only in the current turn.
func (r *Responses) input(req *llm.Request) []responses.ResponseInputItemUnionParam {
	turn := turnOf(req.Messages)
	items := make([]responses.ResponseInputItemUnionParam, 0, len(req.Messages))
	for i, message := range req.Messages {
		switch message.Role {
		case llm.RoleSystem:
			items = append(items, responses.ResponseInputItemParamOfMessage(message.Text(), responses.EasyInputMessageRoleSystem))
		case llm.RoleUser:
			items = appendUserItem(items, message)
		case llm.RoleAssistant:
			items = r.appendAssistantItems(items, message, req.Model, i > turn)
		case llm.RoleTool:
			items = append(items, toolOutput(message))
		}
	}
	return items
}

// appendUserItem converts a user message. It omits a message without supported content.
func appendUserItem(items []responses.ResponseInputItemUnionParam, message llm.Message) []responses.ResponseInputItemUnionParam {
	content := inputContent(message.Parts)
	switch {
	case len(content) == 0:
		return items
	case len(content) == 1 && content[0].OfInputText != nil:
		return append(items, responses.ResponseInputItemParamOfMessage(content[0].OfInputText.Text, responses.EasyInputMessageRoleUser))
	default:
		return append(items, responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser))
	}
}

// toolOutput converts a tool message: to a string if it is only text, else to a list of content
// items.
func toolOutput(message llm.Message) responses.ResponseInputItemUnionParam {
	output := responses.ResponseInputItemFunctionCallOutputParam{CallID: param.NewOpt(message.ToolCallID)}
	content := inputContent(message.Parts)
	shows := slices.ContainsFunc(content, func(part responses.ResponseInputContentUnionParam) bool { return part.OfInputText == nil })
	if shows {
		output.Output.OfResponseFunctionCallOutputItemArray = outputContent(content)
	} else {
		output.Output.OfString = param.NewOpt(message.Text())
	}
	return responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &output}
}

// appendAssistantItems converts an assistant message to its items: the text, then the calls, each
// after its reasoning. The API rejects reasoning without the original ID of the item after it. It
// also rejects an original ID without its reasoning, so outside the current turn the items have no
// ID.
func (r *Responses) appendAssistantItems(items []responses.ResponseInputItemUnionParam, message llm.Message, model string, inTurn bool) []responses.ResponseInputItemUnionParam {
	chains := r.reasoningChains(message, model)
	if text := message.Text(); text != "" {
		chain := chains[successor{Type: typeMessage}.key()]
		if inTurn {
			items = append(items, chain.items()...)
		} else {
			chain.next.ID = ""
		}
		items = append(items, assistantItem(text, chain.next))
	}
	for _, call := range message.ToolCalls {
		chain := chains[successor{Type: typeCall, Call: call.ID}.key()]
		if inTurn {
			items = append(items, chain.items()...)
		} else {
			chain.next.ID = ""
		}
		items = append(items, callItem(call, chain.next.ID))
	}
	return items
}

// assistantItem returns the item of a text: an output message with its original ID if it has one,
// else a message without ID.
func assistantItem(text string, as successor) responses.ResponseInputItemUnionParam {
	if as.ID == "" {
		item := responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleAssistant)
		item.OfMessage.Phase = responses.EasyInputMessagePhase(as.Phase)
		return item
	}
	return responses.ResponseInputItemUnionParam{OfOutputMessage: &responses.ResponseOutputMessageParam{
		ID:     as.ID,
		Status: responses.ResponseOutputMessageStatusCompleted,
		Phase:  responses.ResponseOutputMessagePhase(as.Phase),
		Content: []responses.ResponseOutputMessageContentUnionParam{{OfOutputText: &responses.ResponseOutputTextParam{
			Text: text, Annotations: []responses.ResponseOutputTextAnnotationUnionParam{},
		}}},
	}}
}

// callItem returns the item of a tool call. id is its original item ID, or "". It differs from the
// ID of the call, which matches call and result.
func callItem(call llm.ToolCall, id string) responses.ResponseInputItemUnionParam {
	item := &responses.ResponseFunctionToolCallParam{CallID: call.ID, Name: call.Name, Arguments: string(wire.Object(call.Arguments))}
	if id != "" {
		item.ID = param.NewOpt(id)
	}
	return responses.ResponseInputItemUnionParam{OfFunctionCall: item}
}
