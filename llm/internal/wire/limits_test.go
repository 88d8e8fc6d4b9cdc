package wire

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/perdure/perdure/llm"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		body   string
		want   string // what can be read
		whole  bool
	}{
		"within":           {200, "12345678\n1234\n\n", "12345678\n1234\n\n", true},
		"line at the end":  {200, "\n12345678", "\n12345678", true},
		"too long a line":  {200, "1\n123456789\n", "", false},
		"too many bytes":   {200, strings.Repeat("1234\n", 5), "", false},
		"lines of nothing": {200, strings.Repeat("\n", 20), strings.Repeat("\n", 20), true},
		"a refusal is cut": {400, strings.Repeat("x", errorBodyBytes+1), strings.Repeat("x", errorBodyBytes), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, reader := range map[string]io.Reader{"at once": strings.NewReader(test.body), "byte by byte": iotest.OneByteReader(strings.NewReader(test.body))} {
				client := Limits{ResponseBytes: 20, LineBytes: 8}.Client(&http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: test.status, Body: io.NopCloser(reader)}, nil
				})})
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x.example", nil)
				if err != nil {
					t.Fatal(err)
				}
				res, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				var failure *llm.Error
				if tooLarge := errors.As(err, &failure) && failure.Code == llm.CodeResponseTooLarge; tooLarge == test.whole {
					t.Errorf("%s: error is %v", kind, err)
				}
				if test.whole && string(got) != test.want {
					t.Errorf("%s: body is %q, want %q", kind, got, test.want)
				}
			}
		})
	}
}
