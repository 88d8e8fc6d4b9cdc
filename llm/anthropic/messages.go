package anthropic

import (
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// messages returns the turns of the conversation: of the user with the results of
// tools, and of the assistant, in alternation.
func (m *Model) messages(messages []llm.Message) []anthropic.MessageParam {
	var turns []anthropic.MessageParam
	for _, message := range messages {
		switch message.Role {
		case llm.RoleUser:
			turns = appendTurn(turns, anthropic.MessageParamRoleUser, userBlocks(message.Parts))
		case llm.RoleTool:
			turns = appendTurn(turns, anthropic.MessageParamRoleUser, []anthropic.ContentBlockParamUnion{toolResult(message)})
		case llm.RoleAssistant:
			blocks := m.assistantBlocks(message)
			if len(turns) == 0 && len(blocks) > 0 {
				turns = appendTurn(turns, anthropic.MessageParamRoleUser, []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(wire.Opening)})
			}
			turns = appendTurn(turns, anthropic.MessageParamRoleAssistant, blocks)
		}
	}
	return turns
}

// appendTurn appends blocks to the last turn if that is the role's, else as a
// turn of its own. A message of which nothing can be sent is left out, as the
// API refuses one without content.
func appendTurn(turns []anthropic.MessageParam, role anthropic.MessageParamRole, blocks []anthropic.ContentBlockParamUnion) []anthropic.MessageParam {
	if len(blocks) == 0 {
		return turns
	}
	if last := len(turns) - 1; last >= 0 && turns[last].Role == role {
		turns[last].Content = append(turns[last].Content, blocks...)
		return turns
	}
	return append(turns, anthropic.MessageParam{Role: role, Content: blocks})
}

// assistantBlocks returns an answer in the order in which it was said.
func (m *Model) assistantBlocks(message llm.Message) []anthropic.ContentBlockParamUnion {
	var blocks []anthropic.ContentBlockParamUnion
	if wire.Blank(message.Text()) && len(message.ToolCalls) == 0 {
		return nil // thinking alone is no answer
	}
	for element := range wire.Weave(message, m.placeOf) {
		switch {
		case element.Block != nil:
			blocks = append(blocks, m.thinkingBlock(*element.Block))
		case element.Call != nil:
			blocks = append(blocks, toolUse(*element.Call))
		case !wire.Blank(element.Text):
			blocks = append(blocks, anthropic.NewTextBlock(element.Text))
		}
	}
	return blocks
}

func toolUse(call llm.ToolCall) anthropic.ContentBlockParamUnion {
	return anthropic.NewToolUseBlock(wire.Nameable(call.ID), wire.Object(call.Arguments), wire.Nameable(call.Name))
}

func toolResult(message llm.Message) anthropic.ContentBlockParamUnion {
	result := &anthropic.ToolResultBlockParam{ToolUseID: wire.Nameable(message.ToolCallID)}
	if message.IsError {
		result.IsError = param.NewOpt(true)
	}
	for _, block := range userBlocks(message.Parts) {
		result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{
			OfText: block.OfText, OfImage: block.OfImage, OfDocument: block.OfDocument,
		})
	}
	return anthropic.ContentBlockParamUnion{OfToolResult: result}
}
