package kit

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
)

// SignInProvider is a process of oidc-provider, a certified OpenID provider, at which users sign in
// with a browser. Perdure is its client.
type SignInProvider struct {
	URL string
}

// StartSignInProvider starts a provider for the Perdure at an origin. It stops when the test ends.
func StartSignInProvider(t *testing.T, origin string) *SignInProvider {
	t.Helper()
	if err := Install(filepath.Join("node", "issuer")); err != nil {
		t.Fatal(err)
	}
	server, err := launchNode("issuer.mjs", "issuer", origin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("the provider: %v", err)
		}
	})
	return &SignInProvider{URL: server.URL}
}

// Environ returns the variables of a Perdure whose users sign in at the provider.
func (p *SignInProvider) Environ() []string {
	return []string{
		"PERDURE_AUTH=oidc", "PERDURE_OIDC_ISSUER=" + p.URL, "PERDURE_OIDC_AUDIENCE=perdure", "PERDURE_OIDC_TENANT=shop",
		"PERDURE_OIDC_CLIENT_ID=console", "PERDURE_OIDC_CLIENT_SECRET=secret-of-the-console",
	}
}

// SetRoles sets the roles of a user at the provider.
func (p *SignInProvider) SetRoles(t *testing.T, name string, roles ...string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"name": name, "roles": roles})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.URL+"/accounts", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("roles of %s: got %s", name, resp.Status)
	}
}

// Cookie is a cookie of a profile, as Chromium stores it.
type Cookie struct {
	Name     string  `json:"name"`
	Value    string  `json:"value"`
	Path     string  `json:"path"`
	Expires  float64 `json:"expires"` // seconds since 1970; -1 = with the browser
	HTTPOnly bool    `json:"httpOnly"`
	Secure   bool    `json:"secure"`
	SameSite string  `json:"sameSite"`
}

// Cookies returns the cookies that the profile of the tab has for a URL, by name.
func (p *Tab) Cookies(url string) map[string]Cookie {
	t := p.browser.t
	t.Helper()
	var list []Cookie
	if err := json.Unmarshal(p.do(map[string]any{"cookies": url}).Value, &list); err != nil {
		t.Fatal(err)
	}
	byName := map[string]Cookie{}
	for _, c := range list {
		byName[c.Name] = c
	}
	return byName
}
