package mcptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/tools/internal/secrets"
)

// roundTripper adds the server's headers to requests to its host only, and bounds the answers.
type roundTripper struct {
	base    http.RoundTripper
	host    string
	headers secrets.Texts
	secret  secrets.Lookup
}

// statusError is an answer that is no message of MCP.
type statusError struct {
	status     int
	retryAfter time.Duration
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answered HTTP %d %s", e.status, http.StatusText(e.status))
}

// noAnswers are statuses whose bodies are not read.
var noAnswers = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// RoundTrip implements [http.RoundTripper].
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if egress.HostOf(req.URL) == t.host {
		headers, _, err := t.headers.Fill(t.secret)
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		for name, value := range headers {
			req.Header.Set(name, value)
		}
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if req.Method == http.MethodPost && slices.Contains(noAnswers, resp.StatusCode) {
		_ = resp.Body.Close()
		after, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31) // a date counts as 0
		return nil, &statusError{status: resp.StatusCode, retryAfter: time.Duration(after) * time.Second}
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && mediaType != mediaJSON && mediaType != mediaEvents && isCall(req) {
		_ = resp.Body.Close()
		return nil, &foreignError{mediaType}
	}
	if mediaType != mediaEvents { // each event has a bound
		resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxMessage}
	}
	return resp, nil
}

// Media types of answers to calls.
const (
	mediaJSON   = "application/json"
	mediaEvents = "text/event-stream"
)

// foreignError is an answer of another server, such as a page of a proxy. The SDK detects it too,
// but closes the connection, and its error is not always the same.
type foreignError struct{ mediaType string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("the server answered with the content type %.80q, which is none of MCP", e.mediaType)
}

// isCall reports whether the request has a call. Answers to other messages are ignored.
func isCall(req *http.Request) bool {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	defer func() { _ = body.Close() }()
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	return json.NewDecoder(body).Decode(&message) == nil && message.ID != nil && message.Method != ""
}

var errTooLarge = errors.New("the server's answer is too large")

// boundedBody fails if the body is larger than its bound.
type boundedBody struct {
	io.ReadCloser

	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (r *remote) explain(err error) (egress.Failure, string) {
	var (
		status  *statusError
		foreign *foreignError
	)
	switch {
	case errors.As(err, &status) && (status.status == http.StatusUnauthorized || status.status == http.StatusForbidden):
		return egress.Refused, status.Error()
	case errors.As(err, &status) && status.status == http.StatusTooManyRequests:
		return egress.Unreached, status.Error()
	case errors.As(err, &status):
		return egress.Broken, status.Error()
	case errors.As(err, &foreign):
		return egress.Broken, foreign.Error()
	case errors.Is(err, mcp.ErrSessionMissing):
		return egress.Unreached, "the server has forgotten our session; nothing was done"
	}
	return egress.Explain(r.endpoint.Host, err)
}

func (r *remote) redactor() secrets.Redactor {
	_, redactor, _ := r.headers.Fill(r.secret) // without its secrets there is no connection
	return redactor
}
