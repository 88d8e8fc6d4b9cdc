package scripted

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/perdure/perdure/llm"
)

// Think returns the script "think". Like [Demo] it calls the tools that are offered and that the
// user's text asks for, but thinks before each answer: a block that can be read and one that
// cannot, both of which it wants back. It says how many of this turn's came back as they were. Like
// a provider that searches by itself it shows an activity meanwhile: how far it has read what the
// user says.
func Think(pace time.Duration) Script {
	return Script{Name: "think", Pace: pace, Play: think}
}

func think(_ int, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	said := strings.TrimSpace(lastUser(req).Text())
	turn := currentTurn(req)
	calls := demoCalls(req, said)
	answer := Say(fmt.Sprintf("I am a script and have thought %d times before.", countIntact(turn)))
	if len(calls) > 0 && len(toolResults(turn)) == 0 {
		answer = Calls(calls...)
	}
	return func(yield func(llm.Chunk, error) bool) {
		for _, step := range thoughts(said) {
			if !yield(step.Chunk, step.Err) {
				return
			}
		}
		answer(yield)
	}
}

const hidden = `"hidden"`

func thoughts(said string) []Step {
	text := thoughtOn(said)
	steps := []Step{{Chunk: llm.Activity{Name: "read", Kind: "reading", Content: json.RawMessage(`{"done":false}`)}}}
	for _, word := range strings.SplitAfter(text, " ") {
		steps = append(steps, Step{Chunk: llm.ReasoningDelta{Text: word}})
	}
	return append(steps,
		Step{Chunk: llm.ActivityPatch{Name: "read", Patch: json.RawMessage(`[{"op":"replace","path":"/done","value":true}]`)}},
		Step{Chunk: llm.ReasoningEnd{Provider: provider, Data: signature(text)}},
		Step{Chunk: llm.ReasoningEnd{Provider: provider, Data: json.RawMessage(hidden)}})
}

func thoughtOn(said string) string { return fmt.Sprintf("The user says “%s”.", short(said)) }

// signature stands for a provider's proof that the text is its own.
func signature(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"length":%d}`, len(text)))
}

// countIntact counts the blocks of a turn that are as the script made them.
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
