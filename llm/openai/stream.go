package openai

import (
	"context"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// request is one API request.
type request struct {
	path   string       // relative to the base URL
	params any          // body, without the stream option
	meant  *llm.Request // source of params, for errors and the idempotency key
}

// stream makes one call. It returns nil after success, and also if the consumer broke out of the
// range; yield must not be called after that.
func (e *endpoint) stream(ctx context.Context, req request, answer wire.Reply[ssestream.Event], yield func(llm.Chunk, error) bool) error {
	res, err := e.open(ctx, req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()

	// The SDK's typed stream is not used: it fails on "error": null, and decoding its strings
	// destroys split characters.
	return wire.Stream(ctx, ssestream.NewDecoder(res), answer, yield)
}

// open sends the request and returns the response if that is an event stream. The caller closes its
// body.
func (e *endpoint) open(ctx context.Context, req request) (*http.Response, error) {
	if e.refusal != nil {
		return nil, e.refusal
	}
	options := []option.RequestOption{option.WithJSONSet("stream", true)}
	if key := req.meant.IdempotencyKey; key != "" {
		options = append(options, option.WithHeader("Idempotency-Key", key))
	}
	var res *http.Response
	err := e.client.Post(ctx, req.path, req.params, &res, options...)
	return e.api.Accept(req.meant, res, err)
}
