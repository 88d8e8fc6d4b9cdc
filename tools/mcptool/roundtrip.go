package mcptool

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/internal/egress"
	"github.com/perdure/perdure/tools/internal/secrets"
)

// roundTripper adds the server's headers to what goes to its host and to no other, and bounds what
// comes back.
type roundTripper struct {
	base    http.RoundTripper
	host    string
	headers secrets.Texts
	secret  secrets.Lookup
}

// statusError is an answer that has nothing of MCP.
type statusError struct {
	status     int
	retryAfter time.Duration
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answered HTTP %d %s", e.status, http.StatusText(e.status))
}

// noAnswers are statuses whose bodies are not worth reading.
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
		after, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31) // a date is none: 0
		return nil, &statusError{status: resp.StatusCode, retryAfter: time.Duration(after) * time.Second}
	}
	// The events of a stream are bounded one by one.
	if mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mediaType != "text/event-stream" {
		resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxMessage}
	}
	return resp, nil
}

var errTooLarge = errors.New("the server's answer is too large")

// boundedBody fails when more comes than may.
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
	var status *statusError
	switch {
	case errors.As(err, &status) && (status.status == http.StatusUnauthorized || status.status == http.StatusForbidden):
		return egress.Refused, status.Error()
	case errors.As(err, &status) && status.status == http.StatusTooManyRequests:
		return egress.Unreached, status.Error()
	case errors.As(err, &status):
		return egress.Broken, status.Error()
	case errors.Is(err, mcp.ErrSessionMissing):
		return egress.Unreached, "the server has forgotten our session; nothing was done"
	}
	return egress.Explain(r.endpoint.Host, err)
}

func (r *remote) redactor() secrets.Redactor {
	_, redactor, _ := r.headers.Fill(r.secret) // without its secrets there is no connection either
	return redactor
}
