package gemini

import (
	"bytes"
	"context"
	"encoding/json"
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
	return wire.Stream(ctx, newEvents(res.Body, m.limits.LineBytes), newAnswer(m, req), yield)
}

// open sends the request and returns the response if it is an event stream.
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
	return m.api.Accept(req, res, err)
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
