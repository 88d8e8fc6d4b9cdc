package anthropic

import (
	"encoding/json"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// opening stands for the user where a conversation begins with an answer.
const opening = "(The conversation begins with you.)"

// messages are the turns of the conversation: of the user with the results of
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
			if len(turns) == 0 {
				turns = appendTurn(turns, anthropic.MessageParamRoleUser, []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(opening)})
			}
			turns = appendTurn(turns, anthropic.MessageParamRoleAssistant, m.assistantBlocks(message))
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

// assistantBlocks is an answer in the order in which it was said.
func (m *Model) assistantBlocks(message llm.Message) []anthropic.ContentBlockParamUnion {
	var blocks []anthropic.ContentBlockParamUnion
	if blank(message.Text()) && len(message.ToolCalls) == 0 {
		return nil // thinking alone is no answer
	}
	for element := range wire.Weave(message, m.placeOf) {
		switch {
		case element.Block != nil:
			blocks = append(blocks, m.thinkingBlock(*element.Block))
		case element.Call != nil:
			blocks = append(blocks, toolUse(*element.Call))
		case !blank(element.Text):
			blocks = append(blocks, anthropic.NewTextBlock(element.Text))
		}
	}
	return blocks
}

func toolUse(call llm.ToolCall) anthropic.ContentBlockParamUnion {
	return anthropic.NewToolUseBlock(nameable(call.ID), input(call.Arguments), nameable(call.Name))
}

// input is the arguments of a call. The API takes an object only: what a model
// wrote instead becomes a member of one, so that it sees its mistake.
func input(arguments string) json.RawMessage {
	text := strings.TrimSpace(arguments)
	if text == "" {
		return json.RawMessage(`{}`)
	}
	if text[0] == '{' && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	object, _ := json.Marshal(map[string]string{"arguments": arguments}) // text always has a JSON form
	return object
}

func toolResult(message llm.Message) anthropic.ContentBlockParamUnion {
	result := &anthropic.ToolResultBlockParam{ToolUseID: nameable(message.ToolCallID)}
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

// Names and ids that other providers' models have written may have characters
// and lengths for which the API refuses the request.
var notNameable = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

const maxName = 64

// nameable makes a name or an id fit: the same for the same, and another for
// another.
func nameable(name string) string {
	fit := notNameable.ReplaceAllString(name, "_")
	if fit == name && name != "" && len(name) <= maxName {
		return name
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // a hash takes anything
	mark := "_" + strconv.FormatUint(uint64(sum.Sum32()), 36)
	return fit[:min(len(fit), maxName-len(mark))] + mark
}
