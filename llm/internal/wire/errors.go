package wire

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/perdure/perdure/llm"
)

// maxRetryAfter bounds what we believe of a Retry-After.
const maxRetryAfter = 24 * time.Hour

// RetryAfter reads how long the provider asks us to wait: retry-after-ms, or
// Retry-After in seconds or as a date. It is 0 if there is no such wish.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return clamp(ms / 1000)
	}
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return clamp(seconds)
	}
	if date, err := http.ParseTime(value); err == nil {
		return clamp(date.Sub(now).Seconds())
	}
	return 0
}

func clamp(seconds float64) time.Duration {
	if !(seconds > 0) { // written so that NaN is no wish either
		return 0
	}
	if seconds > maxRetryAfter.Seconds() {
		return maxRetryAfter
	}
	return time.Duration(seconds * float64(time.Second))
}

// FromTransport makes an [*llm.Error] of a failure below HTTP: a name that
// does not resolve, a refused or reset connection. An *llm.Error in err's
// chain is returned as it is.
func FromTransport(err error) *llm.Error {
	var known *llm.Error
	if errors.As(err, &known) {
		return known
	}
	// The URL may carry a key and would be in the text of the cause.
	var located *url.Error
	if errors.As(err, &located) {
		err = located.Err
	}
	reason, timeout := connectionReason(err)
	if timeout {
		return &llm.Error{Code: llm.CodeTimeout, Message: "the connection to the provider timed out", Reason: reason, Err: err}
	}
	return &llm.Error{Code: llm.CodeUnavailable, Message: "the provider cannot be reached: " + reason, Reason: reason, Err: err}
}

// Truncated makes an [*llm.Error] of a stream that ended before the
// completion did; err is why, and nil for a regular end of the body.
func Truncated(err error) *llm.Error {
	if err == nil {
		return &llm.Error{Code: llm.CodeTruncated, Message: "the stream ended before the completion did"}
	}
	cause := FromTransport(err)
	if cause.Code != llm.CodeUnavailable {
		return cause
	}
	return &llm.Error{Code: llm.CodeTruncated, Message: "the connection broke before the completion ended", Reason: cause.Reason, Err: cause.Err}
}

// Ended returns the cause of ctx if that has ended, else err. Every failure
// goes through it, because a cancel looks like a broken connection.
func Ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

const (
	maxQuote = 500
	maxEcho  = 16 // bytes in common with a prompt that are too many to be chance
	minEcho  = 8  // the same for a text that is repeated whole
)

// keyLike finds what looks like a credential: the prefixes of the common
// providers' keys, and JSON web tokens.
var keyLike = regexp.MustCompile(`\b(?:(?:sk|pk|rk|gsk|xai)[-_]|AIza|ya29\.|eyJ)[-_.*A-Za-z0-9]{6,}|(?i:\bbearer\s+)[^\s"',]+`)

// Quote makes a provider's message fit for an error: one line, at most 500
// bytes, and without keys or pieces of the conversation that providers like to echo.
func Quote(message string, req *llm.Request, key string) string {
	message = strings.Map(printable, strings.ToValidUTF8(message, "\uFFFD"))
	if key != "" {
		message = strings.ReplaceAll(message, key, "[key]")
	}
	message = keyLike.ReplaceAllLiteralString(message, "[key]")
	if len(message) > maxQuote {
		message = strings.ToValidUTF8(message[:maxQuote], "")
	}
	hidden := make([]bool, len(message))
	for _, text := range contentOf(req) {
		hideEchoes(hidden, message, text)
	}
	return strings.ToValidUTF8(redact(message, hidden), "")
}

func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

func contentOf(req *llm.Request) []string {
	var texts []string
	for _, message := range req.Messages {
		for _, part := range message.Parts {
			if text, ok := part.(llm.Text); ok {
				texts = append(texts, text.Text)
			}
		}
		for _, call := range message.ToolCalls {
			texts = append(texts, call.Arguments)
		}
		for _, block := range message.Reasoning {
			texts = append(texts, block.Text)
		}
	}
	return texts
}

// hideEchoes marks what message has in common with text.
func hideEchoes(hidden []bool, message, text string) {
	window := min(maxEcho, len(text))
	if window < minEcho {
		return
	}
	for start := 0; start+window <= len(message); start++ {
		if !strings.Contains(text, message[start:start+window]) {
			continue
		}
		for i := range window {
			hidden[start+i] = true
		}
	}
}

// redact replaces each marked stretch by a mark.
func redact(message string, hidden []bool) string {
	var out strings.Builder
	for i := range len(message) {
		switch {
		case !hidden[i]:
			out.WriteByte(message[i])
		case i == 0 || !hidden[i-1]:
			out.WriteString("[…]")
		}
	}
	return out.String()
}
