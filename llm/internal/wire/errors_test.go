package wire

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/llm"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "", 0},
		{"Retry-After", "30", 30 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After", "-1", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "Inf", 24 * time.Hour},
		{"Retry-After", "1e300", 24 * time.Hour},
		{"Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT", time.Minute},
		{"Retry-After", "Fri, 02 Jan 2026 03:00:00 GMT", 0},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond},
	} {
		if got := RetryAfter(http.Header{test.name: {test.value}}, now); got != test.want {
			t.Errorf("%s: %s is %v, want %v", test.name, test.value, got, test.want)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	req := &llm.Request{Messages: []llm.Message{
		{Parts: []llm.Part{llm.Text{Text: "my account number is 12345678"}}},
		{Parts: []llm.Part{llm.Text{Text: "hunter22"}, llm.Text{Text: "a"}}},
		{ToolCalls: []llm.ToolCall{{Arguments: `{"password":"correct horse"}`}}, Reasoning: []llm.Reasoning{{Text: "The user is called Ann Lee."}}},
	}}
	for message, want := range map[string]string{
		"model not found":                                 "model not found",
		"bad key sk-secret here":                          "bad key [key] here",
		"cannot parse 'my account number is 12345678'":    "cannot parse '[…]'",
		"near 'account number is 12…'":                    "near '[…]…'",
		"you said hunter22":                               "you said […]",
		`bad arguments {"password":"correct horse"} here`: "bad arguments […] here",
		"he thinks: The user is called Ann Lee.":          "he thinks: […]",
		"two\nlines\x00":                                  "two lines ",
	} {
		if got := Quote(message, req, "sk-secret"); got != want {
			t.Errorf("Quote(%q) is %q, want %q", message, got, want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("you said the password is swordfish", "the password is swordfish")
	f.Add(strings.Repeat("é", 300), "ééééééééé")
	f.Add("\xff\xfe", "\xff")
	f.Fuzz(func(t *testing.T, message, prompt string) {
		req := &llm.Request{Messages: []llm.Message{{Parts: []llm.Part{llm.Text{Text: prompt}}}}}
		got := Quote(message, req, "")
		if !utf8.ValidString(got) || len(got) > 2*maxQuote {
			t.Errorf("Quote(%q) = %q, want UTF-8 of at most %d bytes", message, got, 2*maxQuote)
		}
		if len(prompt) >= minEcho && utf8.ValidString(prompt) && !strings.Contains("[…]", prompt) && strings.Contains(got, prompt) {
			t.Errorf("Quote(%q) contains %q, want it left out", message, prompt)
		}
	})
}

func TestFromTransport(t *testing.T) {
	t.Parallel()
	known := &llm.Error{Code: llm.CodeResponseTooLarge}
	located := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://x.example/?key=secret", Err: err}
	}
	for _, test := range []struct {
		err  error
		want llm.Code
	}{
		{errors.New("reset"), llm.CodeUnavailable},
		{located(errors.New("refused")), llm.CodeUnavailable},
		{located(known), llm.CodeResponseTooLarge},
		{located(context.DeadlineExceeded), llm.CodeTimeout},
	} {
		got := FromTransport(test.err)
		if got.Code != test.want {
			t.Errorf("%v is %v, want %q", test.err, got, test.want)
		}
		if got.Err != nil && strings.Contains(got.Err.Error(), "secret") {
			t.Errorf("cause = %q, want no URL", got.Err)
		}
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()
	cause, failure := errors.New("enough"), errors.New("reset")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := Ended(ctx, failure); err != failure { //nolint:errorlint // identity is meant
		t.Errorf("error is %v, want the failure", err)
	}
	cancel(cause)
	if err := Ended(ctx, failure); err != cause { //nolint:errorlint // identity is meant
		t.Errorf("error is %v, want the cause", err)
	}
}
