package wire

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/perdure/perdure/llm"
)

// Limits bound one response. A zero field means its default.
type Limits struct {
	// ResponseBytes bounds the decompressed body. Framing costs some 300 bytes
	// a token, so the default of 128 MiB lets 400,000 tokens through.
	ResponseBytes int64

	// ContentBytes bounds the text, reasoning and arguments that a response
	// adds up to, which is what a caller keeps in memory. Default 16 MiB.
	ContentBytes int

	// LineBytes bounds a line of the event stream. Default 4 MiB.
	LineBytes int

	// ToolCalls bounds the calls in one completion. Default 512.
	ToolCalls int
}

// errorBodyBytes is how much of a failed response is worth reading.
const errorBodyBytes = 64 << 10

// WithDefaults fills the zero fields.
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

// Client returns a copy of client (nil: http.DefaultClient) whose response
// bodies end with an [*llm.Error] at the limits. The bound has to sit here
// because SDKs read bodies of failed requests and long lines whole. It follows
// no redirect to another host.
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

// maxRedirects is how often a provider may send us on.
const maxRedirects = 3

// checkRedirect refuses redirects that would hand the conversation to a host which
// nobody has configured, or to the same one in the clear.
func checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if next.URL.Host != first.Host || next.URL.Scheme != first.Scheme || len(via) > maxRedirects {
		const reason = "the provider redirects to another place; check the base URL"
		return &llm.Error{Code: llm.CodeInvalidRequest, Message: reason, Reason: reason}
	}
	return nil
}

// withoutRetry returns the request so that net/http does not repeat it. net/http sends a request
// with an Idempotency-Key again if a connection that was used before breaks before the response
// ([http.Transport]). The provider may have begun to answer, and bills both. The header in lower
// case is the same to servers, and no such mark to net/http.
func withoutRetry(req *http.Request) *http.Request {
	const canonical, lower = "Idempotency-Key", "idempotency-key"
	key, ok := req.Header[canonical]
	if !ok {
		return req
	}
	once := req.WithContext(req.Context())
	once.Header = maps.Clone(req.Header)
	delete(once.Header, canonical)
	once.Header[lower] = key
	return once
}

// transport bounds responses.
type transport struct {
	next   http.RoundTripper
	limits Limits
}

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

// boundedBody counts bytes and the length of the current line.
type boundedBody struct {
	io.ReadCloser
	limits Limits
	total  int64
	line   int
}

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

// longLine reports whether a line is too long at the end of the next piece.
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

// TooLarge returns the error of a response that passes a limit.
func TooLarge(format string, limit any) *llm.Error {
	return &llm.Error{Code: llm.CodeResponseTooLarge, Message: fmt.Sprintf(format, limit)}
}
