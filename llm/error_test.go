package llm_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perdure/perdure/llm"
)

func TestErrorText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  llm.Error
		want string
	}{
		{llm.Error{Code: llm.CodeTruncated}, "llm: truncated"},
		{llm.Error{Code: llm.CodeRateLimited, Status: 429, Message: "slow down", Err: errors.New("secret")}, "llm: rate_limited (HTTP 429): slow down"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("text is %q, want %q", got, test.want)
		}
	}
	long := (&llm.Error{Code: llm.CodeUnavailable, Message: strings.Repeat("é", 500)}).Error()
	if len(long) > 540 || !utf8.ValidString(long) {
		t.Errorf("long text = %q, want at most 540 bytes of UTF-8", long)
	}
}

func TestErrorUnwrap(t *testing.T) {
	t.Parallel()
	if err := error(&llm.Error{Code: llm.CodeTruncated, Err: io.ErrUnexpectedEOF}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("errors.Is of the cause = false, want true")
	}
}

func TestRetryable(t *testing.T) {
	t.Parallel()
	for code, want := range map[llm.Code]bool{
		llm.CodeRateLimited:       true,
		llm.CodeUnavailable:       true,
		llm.CodeTimeout:           true,
		llm.CodeConflict:          true,
		llm.CodeTruncated:         true,
		llm.CodeMalformedResponse: true,
		llm.CodeQuotaExceeded:     false,
		llm.CodeInvalidRequest:    false,
		llm.CodeRequestTooLarge:   false,
		llm.CodeContextLength:     false,
		llm.CodeContentFilter:     false,
		llm.CodeUnauthorized:      false,
		llm.CodeForbidden:         false,
		llm.CodeNotFound:          false,
		llm.CodeResponseTooLarge:  false,
		"a code of tomorrow":      false,
	} {
		if got := (&llm.Error{Code: code}).Retryable(); got != want {
			t.Errorf("%q is retryable: %v, want %v", code, got, want)
		}
	}
}
