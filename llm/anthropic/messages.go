package anthropic

import (
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// messages converts the conversation to the alternating user and assistant turns of the API. Tool
// results are part of user turns. System messages are in the system field instead, see system.
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

// appendTurn appends blocks to the last turn if that has the same role, else as a new turn. It
// ignores a message without blocks, since the API rejects a turn without content.
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

// assistantBlocks returns the blocks of an assistant message in their original order.
func (m *Model) assistantBlocks(message llm.Message) []anthropic.ContentBlockParamUnion {
	var blocks []anthropic.ContentBlockParamUnion
	if wire.Blank(message.Text()) && len(message.ToolCalls) == 0 {
		return nil // the API rejects a turn that has only thinking blocks
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

// toolUse returns the block of a tool call. IDs and names of other providers can contain characters
// that the API rejects.
func toolUse(call llm.ToolCall) anthropic.ContentBlockParamUnion {
	return anthropic.NewToolUseBlock(wire.Nameable(call.ID), wire.Object(call.Arguments), wire.Nameable(call.Name))
}

// toolResult returns the block of a tool result. Its ID is converted like that of toolUse, so they
// match.
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
