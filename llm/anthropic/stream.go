package anthropic

import (
	"bytes"
	"context"
	"io"
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

	// Only the SDK's splitting of events is used, not its typed stream, whose
	// strings have lost half characters.
	events := ssestream.NewDecoder(res)
	answer := newAnswer(m, req)
	for !answer.done && events.Next() {
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
	if res == nil {
		return nil, wire.Unanswered(err)
	}
	// The SDK's own error is passed over: it holds the request with the key.
	if res.StatusCode >= 400 {
		return nil, m.refused(req, res)
	}
	if err != nil {
		return nil, wire.FromTransport(err)
	}
	if !wire.Streams(res) {
		return nil, m.misplaced(req, res)
	}
	return res, nil
}

// misplaced returns the error of a successful response that is no event stream.
func (m *Model) misplaced(req *llm.Request, res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	_ = res.Body.Close()
	if err != nil {
		return wire.FromTransport(err)
	}
	if fault, ok := parseFault(bytes.TrimSpace(body)); ok {
		return m.fault(req, fault)
	}
	return wire.Misplaced(res)
}
