package api_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/perdure/perdure/api"
)

// TestPublicKeys: the keys are public, and caches may keep them. Without keys the set is empty.
func TestPublicKeys(t *testing.T) {
	t.Parallel()
	const key = `{"kty":"EC","use":"sig","alg":"ES256","kid":"k","crv":"P-256","x":"eA","y":"eQ"}`
	for name, tt := range map[string]struct {
		keys func() []json.RawMessage
		want string
	}{
		"none": {nil, `{"keys":[]}`},
		"one":  {func() []json.RawMessage { return []json.RawMessage{[]byte(key)} }, `{"keys":[` + key + `]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := setup(t, func(cfg *api.Config) { cfg.PublicKeys = tt.keys })
			a := n.do(http.MethodGet, "/.well-known/jwks.json", "")
			if a.status != http.StatusOK || a.body != tt.want {
				t.Errorf("answer = %d %s, want %s", a.status, a.body, tt.want)
			}
			for name, value := range map[string]string{"Cache-Control": "public, max-age=30", "Content-Type": "application/jwk-set+json"} {
				if got := a.header.Get(name); got != value {
					t.Errorf("%s = %q, want %q", name, got, value)
				}
			}
		})
	}
}
