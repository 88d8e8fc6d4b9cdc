package docs

import (
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/internal/workers/assertion"
)

// TestVerifyingServer: the server of the guide works as written. It refuses assertions that are
// forged, expired, for another server, of another issuer, or of another tenant.
func TestVerifyingServer(t *testing.T) {
	t.Parallel()
	text := readGuide(t, "guides/tool-assertions")
	shop := kit.FreeAddress(t)
	text = strings.ReplaceAll(text, "127.0.0.1:8090", shop)
	g := startGuide(t, text)
	startShop(t, g.build(strings.ReplaceAll(goProgram.FindStringSubmatch(text)[1], "http://127.0.0.1:8080", g.at.URL(""))))
	ran := 0
	for _, block := range guideBlock.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(block[2], "perdure run ") {
			g.runBlock("guides/tool-assertions", block[1], block[2], block[3])
			ran++
		}
	}
	if ran != 2 {
		t.Errorf("runs of the page = %d, want 2", ran)
	}
	keyFile := filepath.Join(g.dir, "data", "assertion_key.pem")
	pemKey, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(keyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file of the key: %v, %v, want mode 0600", info.Mode(), err)
	}
	otherKey, err := assertion.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	claims := func(change func(map[string]any)) map[string]any {
		now := time.Now()
		all := map[string]any{
			"iss": g.at.URL(""), "aud": "http://" + shop, "sub": "ann", "tenant": "default", "contributors": []string{"ann"},
			"iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		}
		change(all)
		return all
	}
	same := func(map[string]any) {}
	for name, tt := range map[string]struct {
		token string
		want  int
	}{
		"valid":            {sign(t, pemKey, claims(same)), http.StatusOK},
		"none":             {"", http.StatusUnauthorized},
		"other key":        {sign(t, otherKey, claims(same)), http.StatusUnauthorized},
		"unsigned":         {unsigned(sign(t, pemKey, claims(same))), http.StatusUnauthorized},
		"changed":          {withClaimsOf(sign(t, pemKey, claims(same)), sign(t, pemKey, claims(func(c map[string]any) { c["sub"] = "bob" }))), http.StatusUnauthorized},
		"expired":          {sign(t, pemKey, claims(func(c map[string]any) { c["exp"] = time.Now().Add(-time.Second).Unix() })), http.StatusUnauthorized},
		"other audience":   {sign(t, pemKey, claims(func(c map[string]any) { c["aud"] = "https://bank.example" })), http.StatusUnauthorized},
		"other issuer":     {sign(t, pemKey, claims(func(c map[string]any) { c["iss"] = "https://agents.example" })), http.StatusUnauthorized},
		"other tenant":     {sign(t, pemKey, claims(func(c map[string]any) { c["tenant"] = "globex" })), http.StatusUnauthorized},
		"no contributors":  {sign(t, pemKey, claims(func(c map[string]any) { delete(c, "contributors") })), http.StatusUnauthorized},
		"two contributors": {sign(t, pemKey, claims(func(c map[string]any) { c["contributors"] = []string{"ann", "bob"} })), http.StatusForbidden},
		"anonymous":        {sign(t, pemKey, claims(func(c map[string]any) { c["contributors"] = []string{"ann", ""} })), http.StatusForbidden},
	} {
		if status, answer := refund(t, shop, tt.token); status != tt.want {
			t.Errorf("%s: answer = %d %s, want %d", name, status, answer, tt.want)
		}
	}
}

// startShop starts the server of the guide.
func startShop(t *testing.T, file string) {
	t.Helper()
	var said kit.Output
	shop, err := kit.Launch(t.Context(), exec.Command(file), &said, func(line []byte) bool { return string(line) == "The shop is open." })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shop.Kill)
}

// refund asks the server for Ann's refund, with an assertion; "" = without.
func refund(t *testing.T, shop, token string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+shop+"/orders/A-1001/refund", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Perdure-Assertion", token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// sign returns a token with a private key in PEM, and with the key ID of a worker.
func sign(t *testing.T, pemKey []byte, claims map[string]any) string {
	t.Helper()
	block, _ := pem.Decode(pemKey)
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: private}, (&jose.SignerOptions{}).WithType(assertion.Type))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// unsigned returns a token without its signature, that says so (RFC 7519, section 6).
func unsigned(token string) string {
	return "eyJhbGciOiJub25lIn0." + strings.Split(token, ".")[1] + "."
}

// withClaimsOf returns a token with the claims of another one.
func withClaimsOf(token, other string) string {
	parts := strings.Split(token, ".")
	parts[1] = strings.Split(other, ".")[1]
	return strings.Join(parts, ".")
}
