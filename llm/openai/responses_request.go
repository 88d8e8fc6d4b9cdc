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
)

// unthinking are OpenAI's models from before reasoning. They refuse a request
// that asks for anything of it; no new ones are made.
var unthinking = regexp.MustCompile(`^(ft:)?(gpt-3|gpt-4|gpt-5-chat|chatgpt-)`)

// params returns the request as the API wants it.
func (r *Responses) params(req *llm.Request) (responses.ResponseNewParams, error) {
	params := responses.ResponseNewParams{
		Model:     req.Model,
		Input:     responses.ResponseNewParamsInputUnion{OfInputItemList: r.input(req)},
		Reasoning: shared.ReasoningParam{Effort: shared.ReasoningEffort(req.ReasoningEffort)},
		Store:     param.NewOpt(false),
	}
	if !unthinking.MatchString(req.Model) {
		params.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
		params.Reasoning.Summary = shared.ReasoningSummaryAuto
	}
	if req.Temperature != nil {
		params.Temperature = param.NewOpt(*req.Temperature)
	}
	if f := r.formatOf(req); f != nil {
		format := &responses.ResponseFormatTextJSONSchemaConfigParam{Name: formatName, Strict: param.NewOpt(f.strict)}
		format.SetExtraFields(map[string]any{"schema": f.schema}) // as in [function]
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

// functionTool returns the definition of a tool. The API would check calls strictly
// unless told not to, and refuses the many schemas that this does not work with.
// As in [function], the schema goes in beside the SDK's field.
func functionTool(tool llm.Tool) (*responses.FunctionToolParam, error) {
	definition := &responses.FunctionToolParam{Name: tool.Name, Strict: param.NewOpt(false)}
	if tool.Description != "" {
		definition.Description = param.NewOpt(tool.Description)
	}
	parameters := tool.Parameters
	if len(parameters) == 0 {
		parameters = json.RawMessage(`{"type":"object","properties":{}}`) // the member is required
	}
	if !json.Valid(parameters) {
		return nil, &llm.Error{Code: llm.CodeInvalidRequest, Message: fmt.Sprintf("the parameters of tool %.64q are not JSON", tool.Name)}
	}
	definition.SetExtraFields(map[string]any{"parameters": parameters})
	return definition, nil
}

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

// appendUserItem leaves out a message of which nothing can be sent.
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

// toolOutput returns a text unless there is more to show.
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

// appendAssistantItems takes an answer apart into the items that it came as.
func (r *Responses) appendAssistantItems(items []responses.ResponseInputItemUnionParam, message llm.Message, model string, inTurn bool) []responses.ResponseInputItemUnionParam {
	trains := r.trainsOf(message, model)
	if text := message.Text(); text != "" {
		train := trains[successor{Type: typeMessage}.place()]
		if inTurn {
			items = append(items, train.items()...)
		} else {
			train.next.ID = "" // it would call for its reasoning
		}
		items = append(items, assistantItem(text, train.next))
	}
	for _, call := range message.ToolCalls {
		train := trains[successor{Type: typeCall, Call: call.ID}.place()]
		if inTurn {
			items = append(items, train.items()...)
		} else {
			train.next.ID = ""
		}
		items = append(items, callItem(call, train.next.ID))
	}
	return items
}

// assistantItem returns the text of an answer: under the id that its reasoning knows it
// by, if there is one.
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

func callItem(call llm.ToolCall, id string) responses.ResponseInputItemUnionParam {
	arguments := call.Arguments
	if arguments == "" {
		arguments = "{}"
	}
	item := &responses.ResponseFunctionToolCallParam{CallID: call.ID, Name: call.Name, Arguments: arguments}
	if id != "" {
		item.ID = param.NewOpt(id)
	}
	return responses.ResponseInputItemUnionParam{OfFunctionCall: item}
}
