package openai

import (
	"context"
	"iter"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// Model is an [llm.Model] for the Chat Completions API. It is immutable and safe for concurrent
// use; it needs no closing.
type Model struct{ endpoint }

var (
	_ llm.Model       = (*Model)(nil)
	_ llm.MediaReader = (*Model)(nil)
)

// New returns a model for config. It does not connect. An invalid configuration is reported by each
// call.
func New(config Config) *Model {
	return newModel(config, wire.Limits{})
}

// newModel is New with limits, which tests lower.
func newModel(config Config, limits wire.Limits) *Model {
	m := &Model{newEndpoint(config, limits)}
	if m.config.MaxTokensField == "" {
		m.config.MaxTokensField = "max_tokens"
		if m.config.BaseURL == DefaultBaseURL {
			m.config.MaxTokensField = "max_completion_tokens"
		}
	}
	if m.config.Provider == "" {
		m.config.Provider = "openai"
	}
	return m
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		params, err := m.params(req)
		if err == nil {
			err = m.stream(ctx, request{"chat/completions", params, req}, newAnswer(m, req), yield)
		}
		if err != nil {
			yield(nil, m.api.Explain(wire.Ended(ctx, err)))
		}
	}
}
