package openai

import (
	"context"
	"iter"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// Responses is an [llm.Model] over the Responses API.
//
// It keeps nothing at the provider: each request carries the conversation, and
// of the turn that the model is in also its reasoning, encrypted by the
// provider, in its place before the message or call that it led to.
type Responses struct{ endpoint }

var (
	_ llm.Model       = (*Responses)(nil)
	_ llm.MediaReader = (*Responses)(nil)
)

// NewResponses returns a model for config. It does not connect.
func NewResponses(config Config) *Responses {
	return newResponses(config, wire.Limits{})
}

func newResponses(config Config, limits wire.Limits) *Responses {
	r := &Responses{newEndpoint(config, limits)}
	if r.config.Provider == "" {
		r.config.Provider = "openai-responses"
	}
	return r
}

// Stream implements [llm.Model].
func (r *Responses) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		params, err := r.params(req)
		if err == nil {
			err = r.stream(ctx, request{"responses", params, req}, newResponse(r, req), yield)
		}
		if err != nil {
			yield(nil, r.api.Explain(wire.Ended(ctx, err)))
		}
	}
}
