package wire

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/perdure/perdure/llm"
)

// Limits are the maximum sizes of one response. A zero field means its default. [Limits.Client]
// enforces the limits of bytes and lines, [Completion] those of content and tool calls.
type Limits struct {
	// ResponseBytes limits the decompressed body. The event format costs about 300 bytes per token,
	// so the default of 128 MiB allows about 400,000 tokens.
	ResponseBytes int64

	// ContentBytes limits the sum of text, reasoning and arguments, which the caller keeps in
	// memory. Default 16 MiB.
	ContentBytes int

	// LineBytes limits a line of the event stream. Default 4 MiB.
	LineBytes int

	// ToolCalls limits the tool calls of one completion. Default 512.
	ToolCalls int
}

// errorBodyBytes is the maximum that is read of the body of a failed response.
const errorBodyBytes = 64 << 10

// WithDefaults returns l with defaults in the zero fields.
func (l Limits) WithDefaults() Limits {
	if l.ResponseBytes == 0 {
		l.ResponseBytes = 128 << 20
	}
	if l.ContentBytes == 0 {
		l.ContentBytes = 16 << 20
	}
	if l.LineBytes == 0 {
		l.LineBytes = 4 << 20
	}
	if l.ToolCalls == 0 {
		l.ToolCalls = 512
	}
	return l
}

// Client returns a copy of client (nil = http.DefaultClient) that enforces the limits. Reading a
// response body beyond them fails with an [*llm.Error]. The limits are enforced in the transport
// because SDKs read error bodies and lines completely into memory. The client follows no redirect
// to another host. It shares the transport of the original, so no extra connections need closing.
func (l Limits) Client(client *http.Client) *http.Client {
	if client == nil {
		client = http.DefaultClient
	}
	bounded := *client
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	bounded.Transport = transport{next: next, limits: l}
	bounded.CheckRedirect = checkRedirect
	return &bounded
}

// maxRedirects is the number of redirects that are followed on the same host.
const maxRedirects = 3

// checkRedirect rejects a redirect to another host or scheme. It would send the conversation and
// the key to a host that the operator has not configured, or unencrypted to the same host.
func checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if next.URL.Host != first.Host || next.URL.Scheme != first.Scheme || len(via) > maxRedirects {
		const reason = "the provider redirects to another host or scheme: check the base URL"
		return &llm.Error{Code: llm.CodeInvalidRequest, Message: reason, Reason: reason}
	}
	return nil
}

// withoutRetry returns the request in a form that net/http does not repeat. net/http retries a
// request with an Idempotency-Key header if a reused connection breaks before the response (see
// [http.Transport]). The provider may have started to answer, and would bill both requests.
// net/http looks up the canonical header name, so a lower-case name avoids the retry; servers
// ignore the case.
func withoutRetry(req *http.Request) *http.Request {
	const canonical, lower = "Idempotency-Key", "idempotency-key"
	key, ok := req.Header[canonical]
	if !ok {
		return req
	}
	// A RoundTripper must not modify the request (see [http.RoundTripper]), so this copies it.
	tracked := req.WithContext(req.Context())
	tracked.Header = maps.Clone(req.Header)
	delete(tracked.Header, canonical)
	tracked.Header[lower] = key
	return tracked
}

// transport is a RoundTripper that limits response bodies. It is safe for concurrent use.
type transport struct {
	next   http.RoundTripper
	limits Limits
}

// RoundTrip implements [http.RoundTripper]. It silently truncates the body of a failed response,
// since an error message is usable without its end. Other bodies fail at the limits.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(withoutRetry(req))
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 400 {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, errorBodyBytes), res.Body}
		return res, nil
	}
	res.Body = &boundedBody{ReadCloser: res.Body, limits: t.limits}
	return res, nil
}

// boundedBody is a response body that fails with a [TooLarge] error at a limit.
type boundedBody struct {
	io.ReadCloser
	limits Limits
	total  int64 // bytes read
	line   int   // bytes read of the current line
}

// Read implements [io.Reader].
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.total += int64(n)
	if b.total > b.limits.ResponseBytes {
		return 0, TooLarge("the response has more than %d bytes", b.limits.ResponseBytes)
	}
	if b.longLine(p[:n]) {
		return 0, TooLarge("a line of the response has more than %d bytes", b.limits.LineBytes)
	}
	return n, err
}

// longLine reports whether piece, the next bytes of the body, ends or continues a line that is too
// long. It updates b.line.
func (b *boundedBody) longLine(piece []byte) bool {
	for {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			b.line += len(piece)
			return b.line > b.limits.LineBytes
		}
		if b.line+end > b.limits.LineBytes {
			return true
		}
		b.line = 0
		piece = piece[end+1:]
	}
}

// TooLarge returns the error of a response that exceeds a limit. format has one verb, for limit.
func TooLarge(format string, limit any) *llm.Error {
	return &llm.Error{Code: llm.CodeResponseTooLarge, Message: fmt.Sprintf(format, limit)}
}
