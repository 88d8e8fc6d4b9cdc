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

// maxRetryAfter is the longest Retry-After that is accepted; longer ones are shortened to it.
const maxRetryAfter = 24 * time.Hour

// RetryAfter returns the delay that a response requests: the header Retry-After-Ms (OpenAI), or
// Retry-After in seconds or as a date (RFC 9110, section 10.2.3). It returns 0 if there is no valid
// delay in the future. now resolves a date.
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

// clamp converts seconds to a duration between 0 and maxRetryAfter.
func clamp(seconds float64) time.Duration {
	if !(seconds > 0) { // negated so that NaN results in 0 as well
		return 0
	}
	if seconds > maxRetryAfter.Seconds() {
		return maxRetryAfter
	}
	return time.Duration(seconds * float64(time.Second))
}

// FromTransport converts an error below HTTP, such as a name that does not resolve or a refused
// connection, to an [*llm.Error]. It returns an *llm.Error in err's chain unchanged: the transport
// of [Limits.Client] produces such errors.
func FromTransport(err error) *llm.Error {
	var known *llm.Error
	if errors.As(err, &known) {
		return known
	}
	// The text of a url.Error contains the URL, which may contain a key.
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

// Truncated returns the error of a stream that ended before the completion did. err is why the
// stream ended, nil for a regular end of the body. Timeouts and exceeded limits keep their own
// code.
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

// Ended returns the cause of ctx if ctx has ended, else err. Providers pass every failure through
// it, because a cancelled request also looks like a broken connection.
func Ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

const (
	maxQuote = 500 // length of a quoted message, in bytes
	maxEcho  = 16  // common bytes with the conversation from which on the match is no coincidence
	minEcho  = 8   // the same for a text shorter than maxEcho that is quoted completely
)

// keyLike matches text that looks like a credential: API keys by the prefixes of common providers,
// bearer tokens, and JSON web tokens.
var keyLike = regexp.MustCompile(`\b(?:(?:sk|pk|rk|gsk|xai)[-_]|AIza|ya29\.|eyJ)[-_.*A-Za-z0-9]{6,}|(?i:\bbearer\s+)[^\s"',]+`)

// Quote sanitizes a provider's error message. The result is one line of at most 500 bytes. API keys
// are replaced by "[key]", and passages of the conversation by "[…]", because providers quote
// prompts in their errors.
func Quote(message string, req *llm.Request, key string) string {
	message = strings.Map(printable, strings.ToValidUTF8(message, "\uFFFD"))
	if key != "" {
		message = strings.ReplaceAll(message, key, "[key]")
	}
	message = keyLike.ReplaceAllLiteralString(message, "[key]")
	if len(message) > maxQuote {
		message = strings.ToValidUTF8(message[:maxQuote], "")
	}
	// One flag per byte of message: true for a byte to be hidden.
	isHidden := make([]bool, len(message))
	for _, text := range contentOf(req) {
		hideEchoes(isHidden, message, text)
	}
	return strings.ToValidUTF8(redact(message, isHidden), "")
}

// printable replaces control characters, including line breaks, by spaces.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// contentOf returns the texts of the conversation that a provider could quote: message text, tool
// call arguments and reasoning.
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

// hideEchoes sets the flags of all passages of message that also occur in text and have at least
// maxEcho bytes. A shorter text is compared as a whole, down to minEcho bytes.
func hideEchoes(isHidden []bool, message, text string) {
	window := min(maxEcho, len(text))
	if window < minEcho {
		return
	}
	for start := 0; start+window <= len(message); start++ {
		if !strings.Contains(text, message[start:start+window]) {
			continue
		}
		for i := range window {
			isHidden[start+i] = true
		}
	}
}

// redact replaces each run of hidden bytes by "[…]". It can cut characters; the caller repairs the
// UTF-8.
func redact(message string, isHidden []bool) string {
	var out strings.Builder
	for i := range len(message) {
		switch {
		case !isHidden[i]:
			out.WriteByte(message[i])
		case i == 0 || !isHidden[i-1]:
			out.WriteString("[…]")
		}
	}
	return out.String()
}
