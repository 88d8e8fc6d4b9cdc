package scripted

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/perdure/perdure/llm"
)

// Think returns the script "think", for tests of reasoning and activities. Like [Demo] it calls the
// offered tools that the user message asks for. Before each answer it produces a visible and an
// encrypted reasoning block, which requests must return. Its answer contains the number of blocks
// of this turn that came back unchanged. Meanwhile it shows an [llm.Activity], like a provider with
// a built-in search.
func Think(pace time.Duration) Script {
	return Script{Name: "think", Pace: pace, Play: think}
}

// think implements the script.
func think(_ int, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	prompt := strings.TrimSpace(lastUser(req).Text())
	turn := currentTurn(req)
	calls := demoCalls(req, prompt)
	answer := Say(fmt.Sprintf("I am a script and have thought %d times before.", countIntact(turn)))
	if len(calls) > 0 && len(toolResults(turn)) == 0 {
		answer = Calls(calls...)
	}
	return func(yield func(llm.Chunk, error) bool) {
		for _, step := range thoughts(prompt) {
			if !yield(step.Chunk, step.Err) {
				return
			}
		}
		answer(yield)
	}
}

// hidden is the data of the encrypted block.
const hidden = `"hidden"`

// thoughts returns the steps before the answer: the activity and the two reasoning blocks.
func thoughts(prompt string) []Step {
	text := thoughtOn(prompt)
	steps := []Step{{Chunk: llm.Activity{Name: "read", Kind: "reading", Content: json.RawMessage(`{"done":false}`)}}}
	for _, word := range strings.SplitAfter(text, " ") {
		steps = append(steps, Step{Chunk: llm.ReasoningDelta{Text: word}})
	}
	return append(steps,
		Step{Chunk: llm.ActivityPatch{Name: "read", Patch: json.RawMessage(`[{"op":"replace","path":"/done","value":true}]`)}},
		Step{Chunk: llm.ReasoningEnd{Provider: provider, Data: signature(text)}},
		Step{Chunk: llm.ReasoningEnd{Provider: provider, Data: json.RawMessage(hidden)}})
}

// thoughtOn returns the visible reasoning about a message.
func thoughtOn(prompt string) string { return fmt.Sprintf("The user says “%s”.", short(prompt)) }

// signature returns the data of a visible block. It depends on the text, like a provider's
// signature.
func signature(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"length":%d}`, len(text)))
}

// countIntact returns the number of blocks in the turn that are unchanged.
func countIntact(turn []llm.Message) int {
	n := 0
	for _, message := range turn {
		for _, block := range message.Reasoning {
			if block.Provider == provider && (block.Text == "" && string(block.Data) == hidden || string(block.Data) == string(signature(block.Text))) {
				n++
			}
		}
	}
	return n
}
