package anthropic

import (
	"context"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// stream makes one call. It returns nil when the consumer stopped the range,
// after which yield must not be called again.
func (m *Model) stream(ctx context.Context, req *llm.Request, yield func(llm.Chunk, error) bool) error {
	res, err := m.open(ctx, req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()

	// The SDK's typed stream is not used: its strings have lost half characters.
	return wire.Stream(ctx, ssestream.NewDecoder(res), newAnswer(m, req), yield)
}

// open sends the request and returns the response if it is an event stream.
func (m *Model) open(ctx context.Context, req *llm.Request) (*http.Response, error) {
	if m.refusal != nil {
		return nil, m.refusal
	}
	params, err := m.params(req)
	if err != nil {
		return nil, err
	}
	options := []option.RequestOption{option.WithJSONSet("stream", true)}
	if bound(&params) {
		options = append(options, option.WithHeader("anthropic-beta", bindingBeta))
	}
	var res *http.Response
	err = m.client.Post(ctx, "v1/messages", params, &res, options...)
	return m.api.Accept(req, res, err)
}
