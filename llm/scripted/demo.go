package scripted

import (
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"time"

	"github.com/perdure/perdure/llm"
)

// The tools that the demo calls if the request offers them.
const (
	toolCalculate   = "calculate"
	toolCurrentTime = "current_time"
)

// maxEcho is the maximum length, in runes, of a quoted message or tool result.
const maxEcho = 200

// announcement begins every answer of the demo, so that nobody mistakes it for a real model.
const announcement = "I am a script, not a real model: this is Perdure's offline demo. "

var (
	expression = regexp.MustCompile(`\d+(?:\.\d+)?(?:\s*[-+*/]\s*\d+(?:\.\d+)?)+`)
	timeWord   = regexp.MustCompile(`(?i)\btime\b`)
)

// Demo returns the script "demo". It says that it is a script and quotes the user message. For an
// arithmetic expression such as 12*7 in the message it calls the tool calculate, and for the word
// "time" the tool current_time, if the request offers them. It makes both calls in parallel if both
// apply. Its answer contains the tool results.
func Demo(pace time.Duration) Script {
	return Script{Name: "demo", Pace: pace, Play: demo}
}

// demo implements the script. Tool results after the last user message show that the calls have
// been made.
func demo(_ int, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	prompt := strings.TrimSpace(lastUser(req).Text())
	results := toolResults(currentTurn(req))
	if calls := demoCalls(req, prompt); len(calls) > 0 && len(results) == 0 {
		return Calls(calls...)
	}
	if prompt == "" {
		return Say(announcement + "You said nothing that I can read.")
	}
	sentences := append([]string{fmt.Sprintf("You said: “%s”.", short(prompt))}, results...)
	return Say(announcement + strings.Join(sentences, " "))
}

// demoCalls returns the calls that the message asks for and the request offers.
func demoCalls(req *llm.Request, prompt string) []llm.ToolCall {
	var calls []llm.ToolCall
	if term := expression.FindString(prompt); term != "" && offered(req, toolCalculate) {
		arguments, _ := json.Marshal(map[string]string{"expression": term}) // strings cannot fail
		calls = append(calls, llm.ToolCall{Name: toolCalculate, Arguments: string(arguments)})
	}
	if timeWord.MatchString(prompt) && offered(req, toolCurrentTime) {
		calls = append(calls, llm.ToolCall{Name: toolCurrentTime, Arguments: "{}"})
	}
	return numbered(req, calls)
}

// numbered sets the IDs of the calls. They continue the numbering of the conversation, so that no
// two calls have the same ID.
func numbered(req *llm.Request, calls []llm.ToolCall) []llm.ToolCall {
	priorCalls := 0
	for _, message := range req.Messages {
		priorCalls += len(message.ToolCalls)
	}
	for i := range calls {
		calls[i].ID = fmt.Sprintf("call_%d", priorCalls+i+1)
	}
	return calls
}

// offered reports whether the request offers the tool.
func offered(req *llm.Request, name string) bool {
	for _, tool := range req.Tools {
		if tool.Name == name {
			return true
		}
	}
	return false
}

// toolResults returns a sentence for each tool result of the turn.
func toolResults(turn []llm.Message) []string {
	names := map[string]string{}
	var sentences []string
	for _, message := range turn {
		for _, call := range message.ToolCalls {
			names[call.ID] = call.Name
		}
		if message.Role == llm.RoleTool {
			sentences = append(sentences, fmt.Sprintf("The tool %s answered: %s", names[message.ToolCallID], short(message.Text())))
		}
	}
	return sentences
}

// short truncates text to maxEcho runes.
func short(text string) string {
	runes := []rune(text)
	if len(runes) <= maxEcho {
		return text
	}
	return string(runes[:maxEcho]) + "…"
}
