package openai

import (
	"context"
	"iter"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// Responses is an [llm.Model] for the Responses API. It is immutable and safe for concurrent use;
// it needs no closing.
//
// Responses are not stored at the provider (store: false). Each request contains the whole
// conversation. For the current turn it also contains the reasoning items, encrypted by the
// provider, each before the message or call that it led to.
type Responses struct{ endpoint }

var (
	_ llm.Model       = (*Responses)(nil)
	_ llm.MediaReader = (*Responses)(nil)
)

// NewResponses returns a model for config. It does not connect. An invalid configuration is
// reported by each call.
func NewResponses(config Config) *Responses {
	return newResponses(config, wire.Limits{})
}

// newResponses is NewResponses with limits, which tests lower.
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
