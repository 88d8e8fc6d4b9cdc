package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

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
	switch {
	case res.StatusCode >= 400:
		return m.refused(req, res)
	case !wire.Streams(res):
		return m.misplaced(req, res)
	}

	events := newEvents(res.Body, m.limits.LineBytes)
	answer := newAnswer(m, req)
	data, err := events.next()
	for ; data != nil; data, err = events.next() {
		// What is buffered must not outlive a cancel.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := answer.read(data); err != nil {
			return err
		}
		if !wire.Deliver(answer.take(), yield) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := answer.end(err); err != nil {
		return err
	}
	wire.Deliver(answer.take(), yield)
	return nil
}

// open sends the request.
func (m *Model) open(ctx context.Context, req *llm.Request) (*http.Response, error) {
	if m.refusal != nil {
		return nil, m.refusal
	}
	body, err := m.body(req)
	if err != nil {
		return nil, err
	}
	data, err := encode(body)
	if err != nil {
		return nil, wire.Unanswered(err)
	}
	model := strings.TrimPrefix(req.Model, "models/")
	address := m.config.BaseURL + "/v1beta/models/" + url.PathEscape(model) + ":streamGenerateContent?alt=sse"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return nil, wire.Unanswered(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	if m.config.APIKey != "" {
		request.Header.Set("X-Goog-Api-Key", m.config.APIKey)
	}
	res, err := m.client.Do(request)
	if err != nil {
		return nil, wire.Unanswered(err)
	}
	return res, nil
}

// encode keeps the order and the digits of schemas and arguments, and leaves <
// and > alone.
func encode(body *body) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(body)
	return b.Bytes(), err
}

// misplaced returns the error of a successful response that is no event stream.
func (m *Model) misplaced(req *llm.Request, res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil {
		return wire.FromTransport(err)
	}
	if fault, ok := parseFault(bytes.TrimSpace(body)); ok {
		return m.fault(req, fault)
	}
	return wire.Misplaced(res)
}
