package kit

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// issuer is an OpenID provider with one key.
type issuer struct {
	URL string
	key *rsa.PrivateKey
}

// StartIssuer starts an issuer that stops when the test ends.
func StartIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	provider := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: "RS256"}}}
	server := httptest.NewUnstartedServer(provider)
	provider.SetIssuer("http://" + server.Listener.Addr().String()) // before the server starts: requests come from another process
	server.Start()
	t.Cleanup(server.Close)
	return &issuer{URL: server.URL, key: key}
}

// Token returns a token for Perdure with a subject, a lifetime and further claims.
func (i *issuer) Token(t *testing.T, subject string, lasts time.Duration, more map[string]any) string {
	t.Helper()
	claims := map[string]any{"iss": i.URL, "aud": "perdure", "sub": subject, "exp": time.Now().Add(lasts).Unix(), "iat": time.Now().Unix()}
	maps.Copy(claims, more)
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return oidctest.SignIDToken(i.key, "k", "RS256", string(body))
}
