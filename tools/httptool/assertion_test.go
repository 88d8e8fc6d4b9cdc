package httptool_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/httptool"
)

// assertionHeader is the header of assertions.
const assertionHeader = "Perdure-Assertion"

// signing returns an environment whose tools sign assertions.
func signing(t *testing.T) httptool.Environment {
	t.Helper()
	key, err := assertion.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := assertion.Open("https://agents.example", func() string { return string(key) }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	env := local
	env.Sign = signer.Sign
	return env
}

// call is a call in a run.
func call(arguments string) tools.Call {
	return tools.Call{ID: "c1", IdempotencyKey: "r1/c1", Arguments: json.RawMessage(arguments), Run: tools.Run{
		Tenant: "acme", Requester: "ann", Contributors: []string{"ann"}, Thread: "t1", ID: "r1", Agent: "support",
	}}
}

// claimsOf returns the claims of an assertion, which is not verified.
func claimsOf(t *testing.T, token string) map[string]any {
	t.Helper()
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := parsed.UnsafeClaimsWithoutVerification(&claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// TestAssertions: each request has an assertion of its own. A server that sends it back does not
// bring it into the result.
func TestAssertions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		audience string
		status   int
	}{"result": {"", http.StatusOK}, "failure": {"shop-api", http.StatusConflict}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, received := echo(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, "got "+r.Header.Get(assertionHeader)+".")
			})
			tool := guarded(t, httptool.Config{Method: "GET", URL: server.URL + "/orders", Timeout: time.Hour, Audience: tt.audience}, signing(t))
			for range 2 {
				result, err := tool.Call(t.Context(), call(`{}`))
				if err != nil || !strings.HasSuffix(result.Content, "got [secret]") && !strings.HasSuffix(result.Content, "got [secret].") {
					t.Errorf("result = %q, %v, want no assertion", result.Content, err)
				}
			}
			first, second := claimsOf(t, received.requests()[0].Header.Get(assertionHeader)), claimsOf(t, received.requests()[1].Header.Get(assertionHeader))
			if first["jti"] == second["jti"] || first["toolCallId"] != "c1" || second["toolCallId"] != "c1" {
				t.Errorf("claims = %v and %v, want two IDs and one call", first, second)
			}
			wantAudience := tt.audience
			if wantAudience == "" {
				wantAudience = server.URL
			}
			if first["aud"] != wantAudience || first["sub"] != "ann" || first["tenant"] != "acme" || first["tool"] != "shop" {
				t.Errorf("claims = %v, want ann of acme, for %s", first, wantAudience)
			}
			if lasts, ok := first["exp"].(float64); !ok || lasts-first["iat"].(float64) != time.Hour.Seconds() {
				t.Errorf("exp = %v, want as long as the call", first["exp"])
			}
		})
	}
}

func TestRedirectsToOtherHostsHaveNoAssertion(t *testing.T) {
	t.Parallel()
	other, atOther := echo(t, nil)
	server, received := echo(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	tool := guarded(t, httptool.Config{
		Method: "GET", URL: server.URL, AllowedHosts: []string{strings.TrimPrefix(other.URL, "http://")},
	}, signing(t))
	if result, err := tool.Call(t.Context(), call(`{}`)); err != nil || result.IsError {
		t.Fatalf("result = %v, %v, want a success", result, err)
	}
	if received.requests()[0].Header.Get(assertionHeader) == "" {
		t.Error("first request has no assertion, want one")
	}
	if got := atOther.requests()[0].Header.Values(assertionHeader); len(got) > 0 {
		t.Errorf("request to the other host has the assertion %s, want none", got)
	}
}

// TestUnsignedCallsAreNotMade: a server never sees a request without the assertion that it expects.
func TestUnsignedCallsAreNotMade(t *testing.T) {
	t.Parallel()
	server, received := echo(t, nil)
	tool := guarded(t, httptool.Config{Method: "GET", URL: server.URL}, signing(t))
	crowded := call(`{}`)
	for i := range 256 {
		crowded.Run.Contributors = append(crowded.Run.Contributors, "employee-"+strconv.Itoa(i)+"@shop.example")
	}
	for want, refused := range map[string]tools.Call{
		"shop failed: the thread has too many contributors for the header Perdure-Assertion: start another thread": crowded,
		"assertion: the call belongs to no run": {ID: "c1"},
	} {
		result, err := tool.Call(t.Context(), refused)
		if diff := cmp.Diff(want, result.Content); err != nil || diff != "" || !result.IsError {
			t.Errorf("result: %v (-want +got):\n%s", err, diff)
		}
	}
	if got := received.requests(); len(got) > 0 {
		t.Errorf("requests = %v, want none", got)
	}
}

func TestDefinitionsCannotSetAssertion(t *testing.T) {
	t.Parallel()
	_, err := httptool.New(httptool.Config{Name: "shop", Method: "GET", URL: "https://shop.example", Headers: map[string]string{"perdure-assertion": "mine"}}, local)
	if want := "http.headers.perdure-assertion is reserved"; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

// TestOtherTokensStay: only assertions are hidden, because a tool may return tokens.
func TestOtherTokensStay(t *testing.T) {
	t.Parallel()
	const session = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"
	server, received := echo(t, func(w http.ResponseWriter, r *http.Request) {
		// Characters around the token may be characters of base64url.
		_, _ = io.WriteString(w, session+" XeyJ"+r.Header.Get(assertionHeader)+" eyJ.eyJ")
	})
	tool := guarded(t, httptool.Config{Method: "GET", URL: server.URL}, signing(t))
	result, err := tool.Call(t.Context(), call(`{}`))
	if want := session + " XeyJ[secret] eyJ.eyJ"; err != nil || result.Content != want {
		t.Errorf("result = %q, %v, want %q", result.Content, err, want)
	}
	if !slices.ContainsFunc(received.requests(), func(r request) bool { return r.Header.Get(assertionHeader) != "" }) {
		t.Error("request has no assertion, want one")
	}
}
