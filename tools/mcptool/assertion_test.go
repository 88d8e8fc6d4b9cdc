package mcptool_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/workers/assertion"
	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/mcptool"
)

// signer returns a signer with a new key.
func signer(t *testing.T) *assertion.Signer {
	t.Helper()
	key, err := assertion.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := assertion.Open("https://agents.example", func() string { return string(key) }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// acmeRun is the run of the tests' calls.
var acmeRun = tools.Run{Tenant: "acme", Requester: "ann", Contributors: []string{"ann", "bob"}, Thread: "t1", ID: "r1", Agent: "support"}

// TestAssertions: each call has an assertion for its server. A server that returns or prints it does
// not bring it into results and logs.
func TestAssertions(t *testing.T) {
	t.Parallel()
	_, server := web(t, nil)
	named := url(server.URL)
	named.Audience = "shop-api"
	for name, tt := range map[string]struct {
		cfg      mcptool.Config
		audience string
	}{"program": {stdio("server"), "mcp:play"}, "web": {url(server.URL), server.URL}, "audience": {named, "shop-api"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connectSigning(t, tt.cfg, signer(t).Sign)
			c.log.await(t, connected, 1)
			result := c.call(t, "assertion", `{}`)
			claims, token, _ := strings.Cut(result.Content, "\n")
			if token != "[secret]" {
				t.Errorf("token in the result = %s, want it hidden", token)
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(claims), &got); err != nil {
				t.Fatal(err)
			}
			for _, differs := range []string{"exp", "iat", "jti"} {
				if got[differs] == nil {
					t.Errorf("claims have no %s, want one", differs)
				}
				delete(got, differs)
			}
			want := map[string]any{
				"iss": "https://agents.example", "aud": tt.audience, "sub": "ann", "act": map[string]any{"sub": "support"}, "tenant": "acme",
				"contributors": []any{"ann", "bob"}, "threadId": "t1", "runId": "r1", "toolCallId": "c1", "tool": "play_assertion",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			if name == "program" {
				c.log.await(t, "received [secret]", 1)
			}
		})
	}
}

func TestUnsignedCallsAreNotMade(t *testing.T) {
	t.Parallel()
	_, server := web(t, nil)
	c := connectSigning(t, url(server.URL), signer(t).Sign)
	c.log.await(t, connected, 1)
	result, err := c.find(t, "echo").Call(t.Context(), tools.Call{ID: "c1"})
	if want := "play_echo failed: assertion: the call belongs to no run"; err != nil || !result.IsError || result.Content != want {
		t.Errorf("result = %v, %v, want %s", result, err, want)
	}
}
