package mcptool

import (
	"context"
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

	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/internal/transport/egress"
)

// roundTripper is the transport below the SDK for streamable HTTP. It adds the server's headers,
// only to requests to its host. It limits the size of responses, and converts responses that are no
// MCP message to errors before the SDK reads them. It is safe for concurrent use.
type roundTripper struct {
	base    http.RoundTripper
	host    string
	headers secrets.Texts
	secret  secrets.Lookup
}

// statusError is the error of an HTTP status that is no MCP message.
type statusError struct {
	status     int
	retryAfter time.Duration // of the Retry-After header; 0 = none
}

// Error implements error.
func (e *statusError) Error() string {
	return fmt.Sprintf("the server answered HTTP %d %s", e.status, http.StatusText(e.status))
}

// unavailableStatuses are the statuses of a POST that RoundTrip converts to a statusError, without
// reading the body.
var unavailableStatuses = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// deleteTimeout bounds the DELETE with which the SDK ends a session. Calls that Stop has cancelled,
// and Stop itself, wait for it. Some servers answer it only after their active calls have ended.
const deleteTimeout = 500 * time.Millisecond

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
	if req.Method == http.MethodDelete {
		ctx, cancel := context.WithTimeout(req.Context(), deleteTimeout)
		defer cancel() // nobody reads the body of the response
		req = req.WithContext(ctx)
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if req.Method == http.MethodPost && slices.Contains(unavailableStatuses, resp.StatusCode) {
		_ = resp.Body.Close()
		after, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31) // a date counts as 0
		return nil, &statusError{status: resp.StatusCode, retryAfter: time.Duration(after) * time.Second}
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && mediaType != mediaJSON && mediaType != mediaEvents && isCall(req) {
		_ = resp.Body.Close()
		return nil, &foreignError{mediaType}
	}
	if mediaType != mediaEvents { // the SDK limits each event
		resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxMessage}
	}
	return resp, nil
}

// The media types of responses to requests in streamable HTTP.
const (
	mediaJSON   = "application/json"
	mediaEvents = "text/event-stream"
)

// foreignError is the error of a response that is not from an MCP server, such as the login page of
// a proxy. The SDK detects it as well, but closes the connection and reports various errors.
type foreignError struct{ mediaType string }

// Error implements error.
func (e *foreignError) Error() string {
	return fmt.Sprintf("the server answered with the content type %.80q, which MCP does not have", e.mediaType)
}

// isCall reports whether the HTTP request contains a JSON-RPC request, which needs a response. The
// body of a response to other messages is ignored.
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

// errTooLarge is the error of a response that exceeds maxMessage.
var errTooLarge = errors.New("the server's answer is too large")

// boundedBody is a response body that fails after a number of bytes.
type boundedBody struct {
	io.ReadCloser

	left int // bytes that may still be read
}

// Read implements [io.Reader].
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// explain implements [dialer].
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
		return egress.Unreached, "the server has lost the session, and nothing was done"
	}
	return egress.Explain(r.endpoint.Host, err)
}

// isOutdated implements [dialer]. Each request has the present secrets.
func (r *remote) isOutdated() bool { return false }

// redactor implements [dialer].
func (r *remote) redactor() secrets.Redactor {
	_, redactor, _ := r.headers.Fill(r.secret) // without all secrets there is no connection
	return redactor
}
