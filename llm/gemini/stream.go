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

// stream makes one call. It returns nil after success, and also if the consumer broke out of the
// range; yield must not be called after that.
func (m *Model) stream(ctx context.Context, req *llm.Request, yield func(llm.Chunk, error) bool) error {
	res, err := m.open(ctx, req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	return wire.Stream(ctx, newEvents(res.Body, m.limits.LineBytes), newAnswer(m, req), yield)
}

// open sends the request and returns the response if that is an event stream. The caller closes its
// body.
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
		return nil, wire.RequestError(err)
	}
	model := strings.TrimPrefix(req.Model, "models/") // as listed by the API's models.list
	address := m.config.BaseURL + "/v1beta/models/" + url.PathEscape(model) + ":streamGenerateContent?alt=sse"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return nil, wire.RequestError(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	if m.config.APIKey != "" {
		request.Header.Set("X-Goog-Api-Key", m.config.APIKey)
	}
	res, err := m.client.Do(request)
	return m.api.Accept(req, res, err)
}

// encode encodes the body without escaping <, > and &, which would only make prompts longer. Raw
// messages keep their member order and number literals.
func encode(body *body) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(body)
	return b.Bytes(), err
}
