package httptool_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/httptool"
)

// TestCallerInRequests: the worker fills the placeholders of the caller, whatever the model writes.
func TestCallerInRequests(t *testing.T) {
	t.Parallel()
	server, received := echo(t, nil)
	env := local
	env.Secret = func(name string) string {
		return map[string]string{"SHOP": "worker-key", "SHOP.acme": "acme-key"}[name]
	}
	tool := guarded(t, httptool.Config{
		Method: "GET", URL: server.URL + "/{caller.tenant}/{caller.subject}/{id}?for={caller.subject}&in=t-{caller.tenant}", Parameters: properties("id", "id"),
		Headers: map[string]string{"X-Tenant": "{caller.tenant}", "X-Key": "${tenantSecret:SHOP}"},
	}, env)
	for _, tt := range []struct {
		run       tools.Run
		arguments string
		want      string // error of the call, or its URI
	}{
		{tools.Run{Tenant: "acme", Requester: "ann"}, `{"id":"7"}`, "/acme/ann/7?for=ann&in=t-acme"},
		{tools.Run{Tenant: "acme", Requester: "ann"}, `{"id":"7","caller.subject":"cfo","caller.tenant":"globex"}`, "/acme/ann/7?for=ann&in=t-acme"},
		{tools.Run{Tenant: "acme", Requester: "a/b?c&d=é"}, `{"id":"{caller.tenant}"}`, "/acme/a%2Fb%3Fc&d=%C3%A9/%7Bcaller.tenant%7D?for=a%2Fb%3Fc%26d%3D%C3%A9&in=t-acme"},
		{tools.Run{Tenant: "acme", Requester: ".."}, `{"id":"7"}`, `invalid arguments: /caller.subject: must have no segment "..", because it is part of the URL's path`},
		{tools.Run{Tenant: "acme"}, `{"id":"7"}`, "the requester of the run is anonymous, and has no {caller.subject}"},
		{tools.Run{Tenant: "globex", Requester: "ann"}, `{"id":"7"}`, "secret SHOP is missing for the tenant: the worker has no PERDURE_SECRET_SHOP.<tenant>"},
		{tools.Run{Tenant: "köln", Requester: "ann"}, `{"id":"7"}`, "secret SHOP is missing for the tenant: the worker has no PERDURE_SECRET_SHOP.<tenant>"},
		{tools.Run{}, `{"id":"7"}`, "the text has a reference to the caller, and there is no call"},
	} {
		before := len(received.requests())
		made := call(tt.arguments)
		made.Run = tt.run
		result, err := tool.Call(t.Context(), made)
		if err != nil {
			t.Fatal(err)
		}
		got := result.Content
		if after := received.requests(); len(after) > before {
			got = after[before].URI
			if h := after[before].Header; h.Get("X-Tenant") != tt.run.Tenant || h.Get("X-Key") != "acme-key" {
				t.Errorf("headers = %v, want those of %s", h, tt.run.Tenant)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("call of %+v with %s (-want +got):\n%s", tt.run, tt.arguments, diff)
		}
	}
}

func TestCallerMistakes(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]httptool.Config{
		"http.url must not have a {place} in its host":                                                          {URL: "https://{caller.tenant}.shop.example/"},
		"http.url has {caller.roles}, which is unknown: there are {caller.tenant} and {caller.subject}":         {URL: "https://shop.example/{caller.roles}"},
		`parameters have "caller.tenant", and names that begin with caller. are reserved`:                       {URL: "https://shop.example/", Parameters: properties("", "caller.tenant")},
		"http.headers.X cannot be used: {caller.id} is unknown: there are {caller.tenant} and {caller.subject}": {URL: "https://shop.example/", Headers: map[string]string{"X": "{caller.id}"}},
		"http.url has {caller.}, which is unknown: there are {caller.tenant} and {caller.subject}":              {URL: "https://shop.example/{caller.}"},
	} {
		cfg.Name, cfg.Method = "shop", http.MethodGet
		if _, err := httptool.New(cfg, local); err == nil || err.Error() != want {
			t.Errorf("error = %v, want %s", err, want)
		}
	}
}
