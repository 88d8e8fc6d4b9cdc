package llmtest

import (
	"context"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/perdure/perdure/llm"
)

// Outcome is the result of one completion.
type Outcome struct {
	Chunks  []llm.Chunk // without the error
	Message llm.Message // collected from Chunks
	Finish  *llm.Finish // nil if Err is set
	Err     error       // the error that ended the stream, or nil
}

// Stream ranges over one completion and fails the test if it violates a rule of package llm:
//
//   - no chunk after the end, and an end with either a Finish or an error
//   - every error is an [*llm.Error] or the cause of ctx
//   - no empty delta, and no invalid UTF-8
//   - no arguments for a call that was not started
//   - call IDs are present and unique
func Stream(t testing.TB, ctx context.Context, model llm.Model, req *llm.Request) Outcome {
	t.Helper()
	var outcome Outcome
	var collector llm.Collector
	rules := rules{t: t, opened: map[int]bool{}, ids: map[string]bool{}}
	for chunk, err := range model.Stream(ctx, req) {
		if outcome.Err != nil || collector.Finish() != nil {
			t.Fatalf("after its end the stream goes on with (%v, %v)", chunk, err)
		}
		if err != nil {
			outcome.Err = err
			rules.failure(ctx, chunk, err)
			continue
		}
		rules.chunk(chunk)
		outcome.Chunks = append(outcome.Chunks, chunk)
		collector.Add(chunk)
	}
	outcome.Message, outcome.Finish = collector.Message(), collector.Finish()
	if outcome.Err == nil && outcome.Finish == nil {
		t.Fatalf("the stream ended with neither a Finish nor an error")
	}
	return outcome
}

// rules checks the chunks of one stream.
type rules struct {
	t      testing.TB
	opened map[int]bool    // by call index
	ids    map[string]bool // call IDs so far
}

// failure checks the error that ends a stream.
func (r rules) failure(ctx context.Context, chunk llm.Chunk, err error) {
	r.t.Helper()
	if chunk != nil {
		r.t.Errorf("chunk %#v comes with an error", chunk)
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return
	}
	_ = asError(r.t, err)
}

// chunk checks one chunk against the chunks before it.
func (r rules) chunk(chunk llm.Chunk) {
	r.t.Helper()
	switch chunk := chunk.(type) {
	case llm.TextDelta:
		r.text(chunk.Text)
	case llm.ReasoningDelta:
		r.text(chunk.Text)
	case llm.ToolCallStart:
		r.text(chunk.ID)
		r.text(chunk.Name)
		if r.opened[chunk.Index] || chunk.Index < 0 {
			r.t.Errorf("call %d is negative or was opened before", chunk.Index)
		}
		if r.ids[chunk.ID] {
			r.t.Errorf("two calls have the id %q", chunk.ID)
		}
		r.opened[chunk.Index], r.ids[chunk.ID] = true, true
	case llm.ToolCallDelta:
		r.text(chunk.Arguments)
		if !r.opened[chunk.Index] {
			r.t.Errorf("arguments for call %d, which is not open", chunk.Index)
		}
	case llm.Finish:
		if chunk.Reason == "" || chunk.Model == "" || chunk.Provider == "" {
			r.t.Errorf("finish lacks its reason, model or provider: %+v", chunk)
		}
	case nil:
		r.t.Errorf("a nil chunk without an error")
	}
}

// text checks a string that must be non-empty UTF-8.
func (r rules) text(text string) {
	r.t.Helper()
	if text == "" {
		r.t.Errorf("an empty delta, id or name")
	}
	if !utf8.ValidString(text) {
		r.t.Errorf("%q is not UTF-8", text)
	}
}

// asError returns err as an [*llm.Error] with a code, or fails the test.
func asError(t testing.TB, err error) *llm.Error {
	t.Helper()
	var failure *llm.Error
	if !errors.As(err, &failure) {
		t.Fatalf("failed with %v (%T), want an *llm.Error", err, err)
	}
	if failure.Code == "" {
		t.Errorf("%v has no code", failure)
	}
	return failure
}
