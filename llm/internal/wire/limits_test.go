package wire

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/perdure/perdure/llm"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status    int
		body      string
		want      string // readable content
		wantWhole bool
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
				if tooLarge := errors.As(err, &failure) && failure.Code == llm.CodeResponseTooLarge; tooLarge == test.wantWhole {
					t.Errorf("%s: error = %v, want ResponseTooLarge: %t", kind, err, !test.wantWhole)
				}
				if test.wantWhole && string(got) != test.want {
					t.Errorf("%s: body is %q, want %q", kind, got, test.want)
				}
			}
		})
	}
}

// TestRequestIsSentOnce: a request that fails with its connection is not sent again, because the
// provider may bill it.
func TestRequestIsSentOnce(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") != "step" {
			t.Errorf("headers of the request = %v, want the idempotency key", r.Header)
		}
		if requests.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(server.Close)
	client := Limits{}.WithDefaults().Client(server.Client())
	for i, broken := range []bool{false, true} { // the second request uses the connection of the first
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "step")
		res, err := client.Do(req)
		if (err != nil) != broken {
			t.Fatalf("request %d: got %v, want an error: %t", i+1, err, broken)
		}
		if err == nil {
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				t.Error(err)
			}
			_ = res.Body.Close()
		}
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("the server got %d requests, want 2", n)
	}
}
