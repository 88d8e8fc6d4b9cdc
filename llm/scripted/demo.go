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

// The tools that the demo calls, if they are offered.
const (
	toolCalculate   = "calculate"
	toolCurrentTime = "current_time"
)

// maxEcho bounds, in runes, what the demo repeats of a message or a result.
const maxEcho = 200

const announcement = "I am a script, not a real model: this is Perdure's offline demo. "

var (
	expression = regexp.MustCompile(`\d+(?:\.\d+)?(?:\s*[-+*/]\s*\d+(?:\.\d+)?)+`)
	timeWord   = regexp.MustCompile(`(?i)\btime\b`)
)

// Demo returns the script "demo". It says that it is one and repeats what the user
// said. Where the tools are offered, an arithmetic expression such as 12*7 in
// the user's text makes it call calculate, and the word "time" current_time,
// both in parallel if it finds both; the results go into its answer.
func Demo(pace time.Duration) Script {
	return Script{Name: "demo", Pace: pace, Play: demo}
}

func demo(_ int, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	said := strings.TrimSpace(lastUser(req).Text())
	results := toolResults(currentTurn(req))
	if calls := demoCalls(req, said); len(calls) > 0 && len(results) == 0 {
		return Calls(calls...)
	}
	if said == "" {
		return Say(announcement + "You said nothing that I can read.")
	}
	sentences := append([]string{fmt.Sprintf("You said: “%s”.", short(said))}, results...)
	return Say(announcement + strings.Join(sentences, " "))
}

// demoCalls returns what the text asks for and the request offers.
func demoCalls(req *llm.Request, said string) []llm.ToolCall {
	var calls []llm.ToolCall
	if found := expression.FindString(said); found != "" && offered(req, toolCalculate) {
		arguments, _ := json.Marshal(map[string]string{"expression": found}) // strings cannot fail
		calls = append(calls, llm.ToolCall{Name: toolCalculate, Arguments: string(arguments)})
	}
	if timeWord.MatchString(said) && offered(req, toolCurrentTime) {
		calls = append(calls, llm.ToolCall{Name: toolCurrentTime, Arguments: "{}"})
	}
	return numbered(req, calls)
}

// numbered gives calls their ids, which go on from those of the conversation, so that no two are
// the same.
func numbered(req *llm.Request, calls []llm.ToolCall) []llm.ToolCall {
	before := 0
	for _, message := range req.Messages {
		before += len(message.ToolCalls)
	}
	for i := range calls {
		calls[i].ID = fmt.Sprintf("call_%d", before+i+1)
	}
	return calls
}

func offered(req *llm.Request, name string) bool {
	for _, tool := range req.Tools {
		if tool.Name == name {
			return true
		}
	}
	return false
}

// toolResults says each result of the turn in a sentence.
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

func short(text string) string {
	runes := []rune(text)
	if len(runes) <= maxEcho {
		return text
	}
	return string(runes[:maxEcho]) + "…"
}
