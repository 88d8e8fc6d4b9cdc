package models

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/scripted"
	"github.com/perdure/perdure/tools/builtin"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// ask calls a model at an address, and returns the error.
func ask(t *testing.T, model llm.Model) *llm.Error {
	t.Helper()
	for _, err := range model.Stream(t.Context(), &llm.Request{Model: "m"}) {
		var failure *llm.Error
		if errors.As(err, &failure) {
			return failure
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the call did not fail")
	return nil
}

// environmentOf returns an environment with one base URL.
func environmentOf(variable, url string) func(string) string {
	return func(name string) string { return map[string]string{variable: url}[name] }
}

var variables = map[string]string{
	"openai": "OPENAI_BASE_URL", "openai-responses": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL", "gemini": "GEMINI_BASE_URL",
}

// TestUnreachedHostsFailFast: a server that was never reachable is reported at once.
func TestUnreachedHostsFailFast(t *testing.T) {
	t.Parallel()
	for provider, variable := range variables {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := listener.Addr().String()
			_ = listener.Close()
			getenv := environmentOf(variable, "http://"+address)
			fast := FromEnv(Options{Getenv: getenv, Silence: time.Minute, FailFast: true})[provider]
			patient := FromEnv(Options{Getenv: getenv, Silence: time.Minute})[provider]
			for name, test := range map[string]struct {
				model     llm.Model
				wantFinal bool
			}{"in development": {fast, true}, "in production": {patient, false}} {
				failure := ask(t, test.model)
				if failure.Final != test.wantFinal || failure.Retryable() == test.wantFinal || failure.Reason != "connection refused" || failure.Host != address || !strings.Contains(failure.Hint, variable) {
					t.Errorf("%s: got %+v, want final: %t, with the host and %s", name, failure, test.wantFinal, variable)
				}
			}
		})
	}
}

// TestHostsThatAnsweredAreRetried: a server that restarts is not reported as a wrong
// configuration.
func TestHostsThatAnsweredAreRetried(t *testing.T) {
	t.Parallel()
	answers := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 500, Body: http.NoBody}, nil
	})
	h := &answeringHosts{next: answers}
	j := classified{hosts: h, failFast: true}
	for name, cause := range map[string]error{
		"refused":     &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"unknown":     &net.DNSError{IsNotFound: true},
		"certificate": &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"no TLS":      http.ErrSchemeMismatch,
		"no HTTP":     tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
	} {
		host := strings.ReplaceAll(name, " ", "-") + ".example"
		failure := &llm.Error{Code: llm.CodeUnavailable, Host: host, Err: cause}
		var judgedBefore, judgedAfter *llm.Error
		if !errors.As(j.classify(failure), &judgedBefore) || judgedBefore.Retryable() {
			t.Errorf("%s before the host has answered: got %+v, want a final failure", name, judgedBefore)
		}
		res, err := h.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+"/v1", nil))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if !errors.As(j.classify(failure), &judgedAfter) || !judgedAfter.Retryable() {
			t.Errorf("%s after the host has answered: got %+v, want a retryable failure", name, judgedAfter)
		}
	}
	busy := &llm.Error{Code: llm.CodeUnavailable, Status: 503, Host: "never.example"}
	var failure *llm.Error
	if !errors.As(j.classify(busy), &failure) || !failure.Retryable() {
		t.Errorf("answer 503: got %+v, want a retryable failure", failure)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestErrorsDoNotContainSecrets: a message has no secret, also not the end of one that begins like another.
func TestErrorsDoNotContainSecrets(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"no order for swordfish-of-the-shop"}}`)
	}))
	t.Cleanup(server.Close)
	for provider, variable := range variables {
		model := FromEnv(Options{Getenv: environmentOf(variable, server.URL), Silence: time.Minute, Secrets: func() []string { return []string{"swordfish", "swordfish-of-the-shop", "no"} }})[provider]
		if failure := ask(t, model); failure.Message != "no order for [secret]" {
			t.Errorf("%s: message = %q, want the secret redacted", provider, failure.Message)
		}
	}
}

func TestRefusedRequestsAreFinal(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 404} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(server.Close)
		for provider, variable := range variables {
			if failure := ask(t, FromEnv(Options{Getenv: environmentOf(variable, server.URL), Silence: time.Minute})[provider]); failure.Retryable() {
				t.Errorf("%s: answer %d: got %+v, want a final failure", provider, status, failure)
			}
		}
	}
}

// TestBuiltInNames: the names of built-in tools are available to programs that check definitions
// without a worker.
func TestBuiltInNames(t *testing.T) {
	t.Parallel()
	names := agents.BuiltIn()
	providers := FromEnv(Options{Getenv: func(string) string { return "" }, Silence: time.Minute})
	if got := slices.Sorted(maps.Keys(providers)); !slices.Equal(got, names.Providers) {
		t.Errorf("providers = %q, want %q", got, names.Providers)
	}
	var scripts, builtins []string
	for _, s := range scripted.Builtin() {
		scripts = append(scripts, s.Name)
	}
	for _, tool := range builtin.Tools() {
		builtins = append(builtins, tool.Spec().Name)
	}
	slices.Sort(scripts)
	slices.Sort(builtins)
	if !slices.Equal(scripts, names.Scripts) || !slices.Equal(builtins, names.Tools) {
		t.Errorf("scripts = %q and tools = %q, want %q and %q", scripts, builtins, names.Scripts, names.Tools)
	}
}

// TestConfiguredProvidersAreNamed: a provider without a key and without a server of its own has no
// name.
func TestConfiguredProvidersAreNamed(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string][]string{
		"":                  {"scripted"},
		"OPENAI_API_KEY":    {"scripted", "openai", "openai-responses"},
		"OPENAI_BASE_URL":   {"scripted", "openai", "openai-responses"},
		"ANTHROPIC_API_KEY": {"scripted", "anthropic"},
		"GEMINI_API_KEY":    {"scripted", "gemini"},
	} {
		o := Options{Getenv: environmentOf(variable, "http://localhost:1"), Scripts: []*agents.Script{{Name: "mine"}}}
		if names := o.Names(); !slices.Equal(names.Providers, want) || !slices.Contains(names.Scripts, "mine") {
			t.Errorf("with %q: names = %+v, want the providers %q and the script", variable, names, want)
		}
	}
}

// TestKeysAreReadForEachCall: a new key of a provider is used at once.
func TestKeysAreReadForEachCall(t *testing.T) {
	t.Parallel()
	for provider, variable := range variables {
		var got string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key")
			w.WriteHeader(http.StatusBadRequest)
		}))
		t.Cleanup(server.Close)
		environment := map[string]string{variable: server.URL}
		model := FromEnv(Options{Getenv: func(name string) string { return environment[name] }, Silence: time.Minute})[provider]
		for _, key := range []string{"first-key", "second-key"} {
			environment[strings.Replace(variable, "BASE_URL", "API_KEY", 1)] = key
			_ = ask(t, model) // the server refuses every request
			if strings.TrimPrefix(got, "Bearer ") != key {
				t.Errorf("%s: key of the request = %q, want %s", provider, got, key)
			}
		}
	}
}
