package httptool

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/internal/secrets"
)

const (
	maxText    = tools.DefaultMaxResult - 128 // room for the note that it was cut
	maxExcerpt = 2 << 10
	maxMedia   = tools.MaxMedia / 4 * 3 // bytes before base64

	// margin is read in addition to what is shown, so that no secret is cut before it is hidden.
	margin = 16 << 10
)

// answer reads a response.
type answer struct {
	tool      *Tool
	resp      *http.Response
	secrets   secrets.Redactor
	mediaType string
}

// readAnswer returns what the model receives of a response. Errors are those of [answer.result].
func (t *Tool) readAnswer(ctx context.Context, resp *http.Response, redactor secrets.Redactor) (tools.Result, error) {
	a := &answer{tool: t, resp: resp, secrets: redactor}
	return a.result(ctx)
}

// result returns what the model receives. The error is a *tools.UnavailableError or a
// *tools.Raised.
func (a *answer) result(ctx context.Context) (tools.Result, error) {
	a.mediaType, _, _ = mime.ParseMediaType(a.resp.Header.Get("Content-Type")) // "" is a type that nobody knows
	if a.resp.StatusCode < 200 || a.resp.StatusCode > 299 {
		return a.failure()
	}
	kind, isMedia := kindOf(a.mediaType)
	switch {
	case a.asks():
		return a.ask(ctx)
	case a.tool.cfg.Method == http.MethodHead:
		return tools.Result{Content: a.status() + a.headerLines()}, nil
	case isMedia:
		return a.media(kind)
	case a.mediaType == "" || isText(a.mediaType):
		return a.text()
	}
	return a.remark("The answer is %.100s, which cannot be shown.", a.mediaType), nil
}

// remark returns the result of a call that has succeeded, and whose answer cannot be shown.
func (a *answer) remark(format string, args ...any) tools.Result {
	return tools.Result{Content: a.secrets.Text(a.status() + ". " + fmt.Sprintf(format, args...))}
}

func (a *answer) text() (tools.Result, error) {
	body, err := a.read(maxText + margin)
	switch {
	case err != nil:
		return tools.Result{}, err
	case len(body) == 0:
		return a.remark("The answer is empty."), nil
	case a.mediaType == "" && !utf8.Valid(trimRune(body)):
		return a.remark("The answer does not say what it is, and cannot be shown."), nil
	}
	text := a.secrets.Text(string(body))
	if len(text) > maxText {
		text = string(trimRune([]byte(text[:maxText]))) + fmt.Sprintf("\n[truncated: the answer has more than %d bytes]", maxText)
	}
	return tools.Result{Content: text}, nil
}

func (a *answer) media(kind llm.MediaKind) (tools.Result, error) {
	body, err := a.read(maxMedia + 1)
	switch {
	case err != nil:
		return tools.Result{}, err
	case len(body) > maxMedia:
		return a.remark("The answer is %.100s of more than %d bytes, too large to be shown.", a.mediaType, maxMedia), nil
	}
	return tools.Result{
		Content: fmt.Sprintf("%s, %d bytes", a.mediaType, len(body)),
		Parts:   []llm.Part{llm.Media{Kind: kind, MIME: a.mediaType, Data: base64.StdEncoding.EncodeToString(body)}},
	}, nil
}

// failure returns the result of an unsuccessful status, or an error if the call has no outcome.
func (a *answer) failure() (tools.Result, error) {
	text := a.status()
	if a.mediaType == "" || isText(a.mediaType) {
		// A part of the body is enough: the status is the outcome.
		body, _ := io.ReadAll(io.LimitReader(a.resp.Body, maxExcerpt+margin))
		shown := a.secrets.Text(string(body))
		shown = string(trimRune([]byte(shown[:min(len(shown), maxExcerpt)])))
		if shown = strings.TrimSpace(strings.ToValidUTF8(shown, "\uFFFD")); shown != "" {
			text += ": " + shown
		}
	}
	if slices.Contains(notAnswers, a.resp.StatusCode) {
		after := retryAfter(a.resp.Header.Get("Retry-After"), time.Now())
		return tools.Result{}, &tools.UnavailableError{Text: text, RetryAfter: after, Err: errors.New(a.status())}
	}
	return tools.Failed(text), nil
}

// notAnswers are the statuses of servers and proxies that cannot answer at the moment: the call has
// no outcome.
var notAnswers = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// read returns at most limit bytes of the body.
func (a *answer) read(limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(a.resp.Body, limit))
	if err != nil {
		return nil, a.tool.unavailable(egress.Broken, "the connection to "+a.tool.host+" broke off in the middle of the answer", err)
	}
	return body, nil
}

func (a *answer) status() string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", a.resp.StatusCode, http.StatusText(a.resp.StatusCode)))
}

// headerLines returns the headers that describe the resource of a HEAD request.
func (a *answer) headerLines() string {
	var b strings.Builder
	for _, name := range []string{"Content-Type", "Content-Length", "Last-Modified", "Etag"} {
		if v := a.resp.Header.Get(name); v != "" {
			fmt.Fprintf(&b, "\n%s: %.500s", name, a.secrets.Text(v))
		}
	}
	return b.String()
}

// trimRune removes an incomplete character at the end.
func trimRune(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

func isText(mediaType string) bool {
	switch mediaType {
	case "application/json", "application/xml", "application/yaml", "application/x-ndjson", "application/x-www-form-urlencoded":
		return true
	}
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "+json") || strings.HasSuffix(mediaType, "+xml")
}

func kindOf(mediaType string) (llm.MediaKind, bool) {
	family, _, _ := strings.Cut(mediaType, "/")
	switch {
	case family == "image" && mediaType != "image/svg+xml":
		return llm.MediaImage, true
	case family == "audio":
		return llm.MediaAudio, true
	case mediaType == "application/pdf":
		return llm.MediaDocument, true
	}
	return "", false
}

// retryAfter reads a Retry-After header: seconds, or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
