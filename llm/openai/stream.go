package openai

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// request is one call of an API.
type request struct {
	path   string
	params any
	meant  *llm.Request
}

// reply turns the events of one call into chunks.
type reply interface {
	// read takes one event.
	read(event ssestream.Event) error
	// over reports whether the last event has come.
	over() bool
	// end closes the completion when the stream is at its end; err is why it
	// ended, if that was not regular.
	end(err error) error
	// take returns the chunks made since the last take, valid until the next read.
	take() []llm.Chunk
}

// stream makes one call. It returns nil when the consumer stopped the range,
// after which yield must not be called again.
func (e *endpoint) stream(ctx context.Context, req request, answer reply, yield func(llm.Chunk, error) bool) error {
	res, err := e.open(ctx, req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()

	// Only the SDK's splitting of events is used, not its typed stream: that
	// fails on `"error": null`, and its strings have lost half characters.
	events := ssestream.NewDecoder(res)
	for !answer.over() && events.Next() {
		// What is buffered must not outlive a cancel.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := answer.read(events.Event()); err != nil {
			return err
		}
		if !wire.Deliver(answer.take(), yield) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := answer.end(events.Err()); err != nil {
		return err
	}
	wire.Deliver(answer.take(), yield)
	return nil
}

// open sends the request and returns the response if it is an event stream.
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
	if res == nil {
		return nil, wire.Unanswered(err)
	}
	// The SDK's own error is passed over: it is lost when the body is not
	// JSON, and it holds the request with the key.
	if res.StatusCode >= 400 {
		return nil, e.refused(req.meant, res)
	}
	if err != nil {
		return nil, wire.FromTransport(err)
	}
	if !wire.Streams(res) {
		return nil, e.misplaced(req.meant, res)
	}
	return res, nil
}

// misplaced returns the error of a successful response that is no event stream.
func (e *endpoint) misplaced(req *llm.Request, res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	_ = res.Body.Close()
	if err != nil {
		return wire.FromTransport(err)
	}
	if fault, ok := parseFault(bytes.TrimSpace(body)); ok {
		return e.fault(req, fault)
	}
	return wire.Misplaced(res)
}
