package scripted

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/llm"
)

// DefaultPace is a pause between two chunks that resembles a real model.
const DefaultPace = 25 * time.Millisecond

const (
	provider = "scripted"     // name in [llm.Finish]
	prefix   = provider + "/" // optional prefix of model names
)

// Script is one named behavior of the model.
type Script struct {
	// Name selects the script: the request's model is Name, or "scripted/" + Name.
	Name string

	// Pace is the pause before each chunk. Zero means no pause.
	Pace time.Duration

	// Play returns the chunks for a request. call counts the requests for this script since [New],
	// from 0. Play must be safe for concurrent use. The sequence must end with a Finish or an
	// error.
	Play func(call int, req *llm.Request) iter.Seq2[llm.Chunk, error]
}

// Model is an [llm.Model] that plays scripts. It is safe for concurrent use.
type Model struct{ scripts map[string]*playable }

// playable is a script with its number of calls.
type playable struct {
	Script
	calls atomic.Int64
}

var _ llm.Model = (*Model)(nil)

// Builtin returns the built-in scripts, at [DefaultPace].
func Builtin() []Script { return []Script{Demo(DefaultPace), Count(DefaultPace), Think(DefaultPace)} }

// New returns a model with the scripts. A later script replaces an earlier one with the same name.
// Without arguments the model has the scripts of [Builtin].
func New(scripts ...Script) *Model {
	if len(scripts) == 0 {
		scripts = Builtin()
	}
	m := &Model{scripts: make(map[string]*playable, len(scripts))}
	for _, script := range scripts {
		m.scripts[script.Name] = &playable{Script: script}
	}
	return m
}

// Stream implements [llm.Model]. An unknown script is an [llm.CodeNotFound] error.
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		script, ok := m.scripts[strings.TrimPrefix(req.Model, prefix)]
		if !ok {
			yield(nil, &llm.Error{Code: llm.CodeNotFound, Message: fmt.Sprintf("no script for model %.64q", req.Model), Reason: "no such script"})
			return
		}
		script.play(ctx, req, yield)
	}
}

// play yields the chunks of one call, each after the pause, and stops after Finish or an error.
func (s *playable) play(ctx context.Context, req *llm.Request, yield func(llm.Chunk, error) bool) {
	call := int(s.calls.Add(1) - 1)
	deltas := int64(0)
	for chunk, err := range s.Play(call, req) {
		if pause(ctx, s.Pace) != nil {
			yield(nil, context.Cause(ctx))
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		finish, isLast := chunk.(llm.Finish)
		if isLast {
			chunk = s.complete(finish, req, deltas)
		}
		if !yield(chunk, nil) || isLast {
			return
		}
		deltas++
	}
	if ctx.Err() != nil {
		yield(nil, context.Cause(ctx))
		return
	}
	yield(nil, &llm.Error{Code: llm.CodeTruncated, Message: "the script ended before the completion did"})
}

// complete sets the zero fields of finish. As token counts it uses words of the request and chunks
// of the answer.
func (s *playable) complete(finish llm.Finish, req *llm.Request, output int64) llm.Finish {
	if finish.Model == "" {
		finish.Model = prefix + s.Name
	}
	if finish.Provider == "" {
		finish.Provider = provider
	}
	if finish.Usage == (llm.Usage{}) {
		input := countWords(req)
		total := input + output
		finish.Usage = llm.Usage{Input: &input, Output: &output, Total: &total}
	}
	return finish
}

// countWords returns the number of words in the messages of the request.
func countWords(req *llm.Request) int64 {
	n := 0
	for _, message := range req.Messages {
		n += len(strings.Fields(message.Text()))
	}
	return int64(n)
}

// pause waits for d. It returns an error if ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
