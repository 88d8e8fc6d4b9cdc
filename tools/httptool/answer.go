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
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/internal/transport/egress"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
)

const (
	maxText    = tools.DefaultMaxResult - 128 // reserves space for the truncation note
	maxExcerpt = 2 << 10                      // text of a failure, in bytes
	maxMedia   = tools.MaxMedia / 4 * 3       // in bytes, before base64

	// margin is the number of bytes that are read in addition to the limit. Redaction comes before
	// truncation, so a secret at the limit is hidden completely.
	margin = 16 << 10
)

// answer converts a response to a result. One goroutine uses it, and the caller closes the body.
type answer struct {
	tool      *Tool
	resp      *http.Response
	secrets   secrets.Redactor // hides the secrets of the request
	mediaType string           // lower case, without parameters; "" = unknown
}

// readAnswer returns the result for a response. The errors are those of answer.result.
func (t *Tool) readAnswer(ctx context.Context, resp *http.Response, redactor secrets.Redactor) (tools.Result, error) {
	a := &answer{tool: t, resp: resp, secrets: redactor}
	return a.result(ctx)
}

// result returns what the model receives. The error is a *tools.UnavailableError, or a
// *tools.Raised if the server asks a question.
func (a *answer) result(ctx context.Context) (tools.Result, error) {
	// An invalid type counts as "".
	a.mediaType, _, _ = mime.ParseMediaType(a.resp.Header.Get("Content-Type"))
	if a.resp.StatusCode < 200 || a.resp.StatusCode > 299 {
		return a.failure()
	}
	kind, isMedia := mediaKind(a.mediaType)
	switch {
	case a.isQuestion():
		return a.raiseQuestion(ctx)
	case a.tool.cfg.Method == http.MethodHead:
		return tools.Result{Content: a.status() + a.headerLines()}, nil
	case isMedia:
		return a.media(kind)
	case a.mediaType == "" || isText(a.mediaType):
		return a.text()
	}
	return a.resultWithNote("The answer is %.100s, which is not supported.", a.mediaType), nil
}

// resultWithNote returns the result of a successful call whose body cannot be shown.
func (a *answer) resultWithNote(format string, args ...any) tools.Result {
	return tools.Result{Content: a.secrets.Text(a.status() + ". " + fmt.Sprintf(format, args...))}
}

// text returns a text body, truncated after maxText bytes.
func (a *answer) text() (tools.Result, error) {
	body, err := a.read(maxText + margin)
	switch {
	case err != nil:
		return tools.Result{}, err
	case len(body) == 0:
		return a.resultWithNote("The answer is empty."), nil
	case a.mediaType == "" && !utf8.Valid(trimRune(body)):
		return a.resultWithNote("The answer is binary data without a content type."), nil
	}
	text := a.secrets.Text(string(body))
	if len(text) > maxText {
		text = string(trimRune([]byte(text[:maxText]))) + fmt.Sprintf("\n[truncated: the answer has more than %d bytes]", maxText)
	}
	return tools.Result{Content: text}, nil
}

// media returns a body as a media part. Media are not truncated, because a part of them is useless.
func (a *answer) media(kind llm.MediaKind) (tools.Result, error) {
	body, err := a.read(maxMedia + 1)
	switch {
	case err != nil:
		return tools.Result{}, err
	case len(body) > maxMedia:
		return a.resultWithNote("The answer is %.100s of more than %d bytes, too large to show.", a.mediaType, maxMedia), nil
	}
	return tools.Result{
		Content: fmt.Sprintf("%s, %d bytes", a.mediaType, len(body)),
		Parts:   []llm.Part{llm.Media{Kind: kind, MIME: a.mediaType, Data: base64.StdEncoding.EncodeToString(body)}},
	}, nil
}

// failure returns the failure of a status outside of 2xx, or an error if the call has no outcome.
func (a *answer) failure() (tools.Result, error) {
	text := a.status()
	if a.mediaType == "" || isText(a.mediaType) {
		// A read error does not matter: the status is the outcome.
		body, _ := io.ReadAll(io.LimitReader(a.resp.Body, maxExcerpt+margin))
		excerpt := a.secrets.Text(string(body))
		excerpt = string(trimRune([]byte(excerpt[:min(len(excerpt), maxExcerpt)])))
		if excerpt = strings.TrimSpace(strings.ToValidUTF8(excerpt, "\uFFFD")); excerpt != "" {
			text += ": " + excerpt
		}
	}
	if slices.Contains(unavailableStatuses, a.resp.StatusCode) {
		after := egress.RetryAfter(a.resp.Header, time.Now())
		return tools.Result{}, &tools.UnavailableError{Text: text, RetryAfter: after, Err: errors.New(a.status())}
	}
	return tools.Failed(text), nil
}

// unavailableStatuses are the statuses with which servers and proxies report that they are
// temporarily unavailable. The call then has no outcome.
var unavailableStatuses = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// read returns at most limit bytes of the body.
func (a *answer) read(limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(a.resp.Body, limit))
	if err != nil {
		return nil, a.tool.unavailableError(egress.Broken, "the connection to "+a.tool.host+" was lost during the answer", err)
	}
	return body, nil
}

// status returns the status line for the model.
func (a *answer) status() string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", a.resp.StatusCode, http.StatusText(a.resp.StatusCode)))
}

// headerLines returns the headers that describe the resource, which are the content of a HEAD
// response.
func (a *answer) headerLines() string {
	var b strings.Builder
	for _, name := range []string{"Content-Type", "Content-Length", "Last-Modified", "Etag"} {
		if v := a.resp.Header.Get(name); v != "" {
			fmt.Fprintf(&b, "\n%s: %.500s", name, a.secrets.Text(v))
		}
	}
	return b.String()
}

// trimRune removes an incomplete UTF-8 character at the end.
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

// isText reports whether the media type is text, including JSON, XML and YAML.
func isText(mediaType string) bool {
	switch mediaType {
	case "application/json", "application/xml", "application/yaml", "application/x-ndjson", "application/x-www-form-urlencoded":
		return true
	}
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "+json") || strings.HasSuffix(mediaType, "+xml")
}

// mediaKind returns the kind of media for a media type. It returns false if models do not accept
// it. SVG is text.
func mediaKind(mediaType string) (llm.MediaKind, bool) {
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
