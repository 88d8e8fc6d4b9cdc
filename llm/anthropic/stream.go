package anthropic

import (
	"context"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// stream makes one call. It returns nil after success, and also if the consumer broke out of the
// range; yield must not be called after that.
func (m *Model) stream(ctx context.Context, req *llm.Request, yield func(llm.Chunk, error) bool) error {
	res, err := m.open(ctx, req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()

	// The SDK's typed stream is not used: decoding its strings destroys split characters.
	return wire.Stream(ctx, ssestream.NewDecoder(res), newAnswer(m, req), yield)
}

// open sends the request and returns the response if that is an event stream. The caller closes its
// body.
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
