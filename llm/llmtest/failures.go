package llmtest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/llm"
)

// testBrokenStreams checks the errors of responses that begin successfully: incomplete streams,
// error events, invalid events, redirects and broken connections. All of them except for redirects
// are retryable.
func testBrokenStreams(t *testing.T, p Provider) {
	for name, test := range map[string]struct {
		events func(Encoder) []string
		codes  []llm.Code
	}{
		"nothing": {
			func(Encoder) []string { return nil },
			[]llm.Code{llm.CodeTruncated, llm.CodeMalformedResponse},
		},
		"no finish": {
			func(e Encoder) []string { return []string{e.Begin(), e.Text(`"Hi"`)} },
			[]llm.Code{llm.CodeTruncated},
		},
		"half an event": {
			func(e Encoder) []string {
				event := e.Text(`"a long piece of text"`)
				return []string{e.Begin(), event[:len(event)/2]}
			},
			[]llm.Code{llm.CodeTruncated},
		},
		"half a tool call": {
			func(e Encoder) []string {
				return []string{e.Begin(), e.ToolCall(0, "a", "lookup"), e.Arguments(0, `"{\"q"`)}
			},
			[]llm.Code{llm.CodeTruncated},
		},
		"a fault": {
			func(e Encoder) []string { return []string{e.Begin(), e.Text(`"Hi"`), e.Fault("overloaded")} },
			[]llm.Code{llm.CodeUnavailable},
		},
		"a fault at once": {
			func(e Encoder) []string { return []string{e.Fault("overloaded")} },
			[]llm.Code{llm.CodeUnavailable},
		},
		"garbage": {
			func(e Encoder) []string { return []string{e.Begin(), e.Text(`"Hi`)} },
			[]llm.Code{llm.CodeMalformedResponse},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure := play(t, p, test.events).failed(t, test.codes...)
			if !failure.Retryable() {
				t.Errorf("%v is not retryable", failure)
			}
		})
	}
	t.Run("a redirect to another host", func(t *testing.T) {
		t.Parallel()
		var requests atomic.Int32
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
		t.Cleanup(elsewhere.Close)
		serve(t, p, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}).failed(t, llm.CodeInvalidRequest)
		if requests.Load() > 0 {
			t.Error("the conversation was sent to a host that nobody has configured")
		}
	})
	t.Run("a broken connection", func(t *testing.T) {
		t.Parallel()
		failure := serve(t, p, func(w http.ResponseWriter, _ *http.Request) {
			e := p.NewEncoder()
			events(w, e.Begin(), e.Text(`"Hi"`))
			panic(http.ErrAbortHandler)
		}).failed(t, llm.CodeTruncated)
		if !failure.Retryable() {
			t.Errorf("%v is not retryable", failure)
		}
	})
}

// testStatuses checks how HTTP statuses map to error codes, and which ones are retryable.
func testStatuses(t *testing.T, p Provider) {
	for status, want := range map[int]llm.Code{
		400: llm.CodeInvalidRequest,
		401: llm.CodeUnauthorized,
		403: llm.CodeForbidden,
		404: llm.CodeNotFound,
		408: llm.CodeTimeout,
		409: llm.CodeConflict,
		413: llm.CodeRequestTooLarge,
		422: llm.CodeInvalidRequest,
		429: llm.CodeRateLimited,
		500: llm.CodeUnavailable,
		502: llm.CodeUnavailable,
		503: llm.CodeUnavailable,
		504: llm.CodeTimeout,
		529: llm.CodeUnavailable,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			failure := refuse(t, p, status, "", p.ErrorBody("no luck")).failed(t, want)
			if failure.Status != status || !strings.Contains(failure.Message, "no luck") {
				t.Errorf("error is %+v, want status %d and the provider's message", failure, status)
			}
			retryable := status >= 500 || status == 408 || status == 409 || status == 429
			if failure.Retryable() != retryable {
				t.Errorf("retryable is %v, want %v", failure.Retryable(), retryable)
			}
			// A gateway before the provider answers in its own format.
			if failure := refuse(t, p, status, "", "<html>no luck</html>").failed(t, want); failure.Status != status {
				t.Errorf("error of an HTML page is %+v, want status %d", failure, status)
			}
		})
	}
	testRetryAfter(t, p)
}

// testRetryAfter checks the parsing of the Retry-After header.
func testRetryAfter(t *testing.T, p Provider) {
	for name, test := range map[string]struct {
		value    string
		min, max time.Duration
	}{
		"none":     {"", 0, 0},
		"seconds":  {"7", 7 * time.Second, 7 * time.Second},
		"date":     {time.Now().Add(2 * time.Hour).UTC().Format(http.TimeFormat), time.Hour, 2 * time.Hour},
		"past":     {"Mon, 02 Jan 2006 15:04:05 GMT", 0, 0},
		"negative": {"-5", 0, 0},
		"nonsense": {"soon", 0, 0},
	} {
		t.Run("retry after "+name, func(t *testing.T) {
			t.Parallel()
			for _, status := range []int{429, 503} {
				failure := refuse(t, p, status, test.value, p.ErrorBody("wait")).failed(t, llm.CodeRateLimited, llm.CodeUnavailable)
				if failure.RetryAfter < test.min || failure.RetryAfter > test.max {
					t.Errorf("retry after %v, want %v to %v", failure.RetryAfter, test.min, test.max)
				}
			}
		})
	}
}

// testExplained checks what an error tells an operator: the host, the cause of a failed connection,
// the provider's message, and the environment variable to check.
func testExplained(t *testing.T, p Provider) {
	for name, test := range map[string]struct {
		status int
		hint   string
	}{
		"a request that is not valid": {400, ""},
		"no valid key":                {401, "_API_KEY"},
		"a key without the right":     {403, "_API_KEY"},
		"an unknown model":            {404, "_BASE_URL"},
		"too many requests":           {429, ""},
		"a broken server":             {500, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := refuse(t, p, test.status, "7", p.ErrorBody("no luck with sk-proj-abcdefgh12345678\nat all"))
			failure := asError(t, s.ask(t).Err)
			if failure.Status != test.status || failure.Message != "no luck with [key] at all" || failure.Reason != "" {
				t.Errorf("error is %+v, want the status %d and the provider's words without the key", failure, test.status)
			}
			if failure.Host != s.host || !strings.Contains(failure.Hint, test.hint) || test.hint == "" && failure.Hint != "" {
				t.Errorf("host %q, hint %q, want %q and a hint of %q", failure.Host, failure.Hint, s.host, test.hint)
			}
			if failure.RetryAfter != 7*time.Second || failure.Retryable() != (test.status == 429 || test.status >= 500) {
				t.Errorf("retryable: %t, after %v", failure.Retryable(), failure.RetryAfter)
			}
		})
	}
	answers := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	encrypted := httptest.NewUnstartedServer(answers)
	encrypted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	encrypted.StartTLS()
	t.Cleanup(encrypted.Close)
	plain := httptest.NewServer(answers)
	t.Cleanup(plain.Close)
	closed := httptest.NewServer(answers)
	closed.Close()
	for name, test := range map[string]struct{ url, reason string }{
		"a refused connection":             {closed.URL, "connection refused"},
		"an unknown host":                  {"http://models.invalid:1234", "unknown host"},
		"a certificate that nobody signed": {encrypted.URL, "TLS: the certificate is signed by an unknown authority"},
		"a server that does not speak TLS": {strings.Replace(plain.URL, "http:", "https:", 1), "TLS: the server does not speak TLS"},
		"a base URL that is no address":    {"localhost:1234", "_BASE_URL is not an http or https URL"},
		"a base URL with a user in front":  {strings.Replace(closed.URL, "//", "//someone:secret@", 1), "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &http.Client{Transport: unresolved()}
			t.Cleanup(client.CloseIdleConnections)
			model := p.New(Endpoint{BaseURL: test.url, APIKey: apiKey, Client: client})
			failure := asError(t, Stream(t, t.Context(), model, request()).Err)
			if !strings.HasSuffix(failure.Reason, test.reason) || !strings.Contains(failure.Hint, "_BASE_URL") {
				t.Errorf("error is %+v, want the reason %q and a hint of the base URL", failure, test.reason)
			}
			if strings.Contains(fmt.Sprintf("%+v", *failure), "secret") || failure.Status != 0 {
				t.Errorf("error is %+v", failure)
			}
			if address, err := url.Parse(test.url); err == nil && failure.Host != address.Host {
				t.Errorf("host is %q, want %q", failure.Host, address.Host)
			}
		})
	}
}

// unresolved returns a transport for which names under .invalid do not resolve, independent of the
// machine's resolver.
func unresolved() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, _, err := net.SplitHostPort(address); err == nil && strings.HasSuffix(host, ".invalid") {
			return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
		}
		return dial(ctx, network, address)
	}
	return t
}

// testSecrets checks that errors contain neither prompts nor API keys, because they are written to
// logs and workflow histories.
func testSecrets(t *testing.T, p Provider) {
	echo := "you said " + prompt + " with the key " + apiKey + strings.Repeat(" and so on", 1000)
	check := func(t *testing.T, err error) {
		t.Helper()
		for _, secret := range []string{prompt, prompt[:20], apiKey} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error %q tells %q", err, secret)
			}
		}
		if n := len(err.Error()); n > 600 {
			t.Errorf("the error is %d bytes long", n)
		}
		if cause := asError(t, err).Err; cause != nil && strings.Contains(cause.Error(), apiKey) {
			t.Errorf("the cause %q tells the key", cause)
		}
	}
	t.Run("status", func(t *testing.T) {
		t.Parallel()
		check(t, refuse(t, p, 400, "", p.ErrorBody(echo)).ask(t).Err)
	})
	t.Run("fault", func(t *testing.T) {
		t.Parallel()
		check(t, play(t, p, func(e Encoder) []string { return []string{e.Begin(), e.Fault(echo)} }).ask(t).Err)
	})
	t.Run("garbage", func(t *testing.T) {
		t.Parallel()
		check(t, play(t, p, func(e Encoder) []string { return []string{e.Begin(), e.Text(`"` + echo)} }).ask(t).Err)
	})
}

// refuse starts a server that answers every request with an error status and body. retryAfter is
// the Retry-After header, omitted if "".
func refuse(t *testing.T, p Provider, status int, retryAfter, body string) *server {
	t.Helper()
	return serve(t, p, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}
