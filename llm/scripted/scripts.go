package scripted

import (
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/llm"
)

// Step is one element of a stream: a chunk, or the error that ends the completion.
type Step struct {
	Chunk llm.Chunk
	Err   error
}

// Fixed returns a script that plays calls[0] for the first call, calls[1] for the second, and so
// on. A further call fails with an error that is not retryable.
//
// The position is counted in this process. A script that must survive a restart has to derive its
// position from the request, as [Dialog] does.
func Fixed(name string, pace time.Duration, calls ...[]Step) Script {
	return Script{Name: name, Pace: pace, Play: func(call int, _ *llm.Request) iter.Seq2[llm.Chunk, error] {
		if call >= len(calls) {
			return fail(&llm.Error{Code: llm.CodeInvalidRequest, Message: fmt.Sprintf("script %.64q has only %d calls", name, len(calls))})
		}
		return play(calls[call])
	}}
}

// Say returns a completion with the text, one word per chunk.
func Say(text string) iter.Seq2[llm.Chunk, error] {
	return play(append(SplitWords(text), Step{Chunk: llm.Finish{Reason: llm.FinishStop}}))
}

// SplitWords splits text into deltas of one word and the space after it.
func SplitWords(text string) []Step {
	var steps []Step
	for _, word := range strings.SplitAfter(text, " ") {
		if word != "" {
			steps = append(steps, Step{Chunk: llm.TextDelta{Text: word}})
		}
	}
	return steps
}

// Calls returns a completion with parallel tool calls. The arguments of each call are split after
// the first colon, and the two parts of all calls are interleaved, as some providers send them.
func Calls(calls ...llm.ToolCall) iter.Seq2[llm.Chunk, error] { return play(callSteps(calls)) }

// callSteps returns the steps of Calls.
func callSteps(calls []llm.ToolCall) []Step {
	var starts, heads, tails []Step
	for i, call := range calls {
		starts = append(starts, Step{Chunk: llm.ToolCallStart{Index: i, ID: call.ID, Name: call.Name}})
		colon := strings.IndexByte(call.Arguments, ':') + 1
		if colon > 0 {
			heads = append(heads, Step{Chunk: llm.ToolCallDelta{Index: i, Arguments: call.Arguments[:colon]}})
		}
		// Words arrive one by one, as they do from a real model.
		for _, s := range SplitWords(call.Arguments[colon:]) {
			tails = append(tails, Step{Chunk: llm.ToolCallDelta{Index: i, Arguments: s.Chunk.(llm.TextDelta).Text}})
		}
	}
	steps := append(append(starts, heads...), tails...)
	return append(steps, Step{Chunk: llm.Finish{Reason: llm.FinishToolCalls}})
}

// play returns a stream of the steps. It ends after an error.
func play(steps []Step) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for _, step := range steps {
			if !yield(step.Chunk, step.Err) || step.Err != nil {
				return
			}
		}
	}
}

// fail returns a stream that fails with err.
func fail(err error) iter.Seq2[llm.Chunk, error] { return play([]Step{{Err: err}}) }

// maxCount is the highest number that [Count] counts to.
const maxCount = 100_000

// countTo matches a request to count.
var countTo = regexp.MustCompile(`(?i)\bcount to (\d{1,9})\b`)

// Count returns the script "count". For a message with "count to N" it answers with the numbers
// from 1 to N, one per chunk. N is limited to 100,000.
func Count(pace time.Duration) Script {
	return Script{Name: "count", Pace: pace, Play: func(_ int, req *llm.Request) iter.Seq2[llm.Chunk, error] {
		match := countTo.FindStringSubmatch(lastUser(req).Text())
		if match == nil {
			return Say(`I am a script and can only count. Say "count to 100".`)
		}
		n, _ := strconv.Atoi(match[1]) // cannot fail: at most nine digits
		return count(min(n, maxCount))
	}}
}

// count returns a completion with the numbers from 1 to n.
func count(n int) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for i := 1; i <= n; i++ {
			text := strconv.Itoa(i)
			if i < n {
				text += " "
			}
			if !yield(llm.TextDelta{Text: text}, nil) {
				return
			}
		}
		yield(llm.Finish{Reason: llm.FinishStop}, nil)
	}
}

// lastUser returns the last user message, or a zero message.
func lastUser(req *llm.Request) llm.Message {
	turn := currentTurn(req)
	if len(turn) == 0 {
		return llm.Message{}
	}
	return turn[0]
}

// currentTurn returns the last user message and all messages after it; nil if there is none.
func currentTurn(req *llm.Request) []llm.Message {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if req.Messages[i].Role == llm.RoleUser {
			return req.Messages[i:]
		}
	}
	return nil
}
