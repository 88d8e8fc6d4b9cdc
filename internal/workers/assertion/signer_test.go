package assertion

import (
	"bytes"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/tools"
)

// generate returns new private keys in PEM.
func generate(t *testing.T, n int) []string {
	t.Helper()
	keys := make([]string, n)
	for i := range keys {
		text, err := GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = string(text)
	}
	return keys
}

// rotation is a signer whose keys and clock the test changes.
type rotation struct {
	*Signer

	text string
	time time.Time
	log  bytes.Buffer
}

// open opens a signer.
func open(t *testing.T, text string) *rotation {
	t.Helper()
	r := &rotation{text: text, time: time.Now()}
	var err error
	if r.Signer, err = Open("https://agents.example", func() string { return r.text }, slog.New(slog.NewTextHandler(&r.log, nil))); err != nil {
		t.Fatal(err)
	}
	r.now = func() time.Time { return r.time }
	return r
}

// subject is the call that the tests sign.
var subject = Subject{
	Tool: "refund", Audience: "https://shop.example", Timeout: 30 * time.Second,
	Call: tools.Call{ID: "call_1", Run: tools.Run{
		Tenant: "acme", Requester: "ann", Contributors: []string{"ann", "bob", ""}, Thread: "t1", ID: "r1", Agent: "support",
	}},
}

// sign returns an assertion with the ID of its key.
func (r *rotation) sign(t *testing.T, s Subject) (token, keyID string) {
	t.Helper()
	token, err := r.Sign(s)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	return token, parsed.Headers[0].KeyID
}

// verify verifies a token with the published keys, as another party does that has only their JSON.
func (r *rotation) verify(t *testing.T, token string) map[string]any {
	t.Helper()
	published, err := json.Marshal(map[string]any{"keys": r.Refresh(t.Context())})
	if err != nil {
		t.Fatal(err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(published, &set); err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := parsed.Claims(set, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestClaims(t *testing.T) {
	t.Parallel()
	r := open(t, generate(t, 1)[0])
	token, _ := r.sign(t, subject)
	header, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
	if err != nil || !strings.Contains(string(header), `"typ":"perdure-assertion+jwt"`) {
		t.Errorf("header = %s, %v, want the type of assertions", header, err)
	}
	got := r.verify(t, token)
	id, _ := got["jti"].(string)
	if len(id) < 20 {
		t.Errorf("jti = %q, want a random ID", id)
	}
	issued := float64(r.time.Unix())
	want := map[string]any{
		"iss": "https://agents.example", "aud": "https://shop.example", "sub": "ann", "iat": issued, "exp": issued + 300, "jti": id,
		"act": map[string]any{"sub": "support"}, "tenant": "acme", "contributors": []any{"ann", "bob", ""},
		"threadId": "t1", "runId": "r1", "toolCallId": "call_1", "tool": "refund",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	again, _ := r.sign(t, subject)
	if r.verify(t, again)["jti"] == id {
		t.Error("two assertions have the same ID, want two")
	}
}

func TestAnonymousRequesterHasNoSubject(t *testing.T) {
	t.Parallel()
	r := open(t, generate(t, 1)[0])
	anonymous := subject
	anonymous.Call.Run.Requester = ""
	token, _ := r.sign(t, anonymous)
	if sub, ok := r.verify(t, token)["sub"]; ok {
		t.Errorf("sub = %v, want none", sub)
	}
}

func TestLongCallHasLongAssertion(t *testing.T) {
	t.Parallel()
	r := open(t, generate(t, 1)[0])
	long := subject
	long.Timeout = time.Hour
	token, _ := r.sign(t, long)
	if got, want := r.verify(t, token)["exp"], float64(r.time.Add(time.Hour).Unix()); got != want {
		t.Errorf("exp = %v, want %v", got, want)
	}
}

func TestCallOutsideOfRunIsNotSigned(t *testing.T) {
	t.Parallel()
	r := open(t, generate(t, 1)[0])
	if token, err := r.Sign(Subject{Tool: "refund", Audience: "https://shop.example"}); err == nil {
		t.Errorf("assertion = %s, want an error", token)
	}
}

// TestRotation: a new key is published at once, and signs later. The old one is verified until it is
// removed.
func TestRotation(t *testing.T) {
	t.Parallel()
	keys := generate(t, 2)
	r := open(t, keys[0])
	before, first := r.sign(t, subject)
	r.text = keys[0] + keys[1]
	published := r.Refresh(t.Context())
	if len(published) != 2 || published[0].ID != first {
		t.Fatalf("published keys = %v, want both, the newest one last", published)
	}
	r.time = r.time.Add(publishTime - time.Second)
	if _, id := r.sign(t, subject); id != first {
		t.Error("the new key signs before it was published for a minute, want the old one")
	}
	r.time = r.time.Add(time.Second)
	token, id := r.sign(t, subject)
	if id != published[1].ID {
		t.Error("the old key signs a minute after the rotation, want the new one")
	}
	r.verify(t, before)
	r.verify(t, token)
	r.text = keys[1]
	if left := r.Refresh(t.Context()); len(left) != 1 || left[0].ID != id {
		t.Errorf("published keys = %v, want the new one", left)
	}
}

// TestReplacedKeySignsAtOnce: without the old key there is no other.
func TestReplacedKeySignsAtOnce(t *testing.T) {
	t.Parallel()
	keys := generate(t, 2)
	r := open(t, keys[0])
	r.text = keys[1]
	published := r.Refresh(t.Context())
	if _, id := r.sign(t, subject); len(published) != 1 || id != published[0].ID {
		t.Errorf("key = %s, want %v", id, published)
	}
}

// TestInvalidKeysChangeNothing: the former keys stay, and one line of the log says why.
func TestInvalidKeysChangeNothing(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"missing file": "", "half of a file": generate(t, 1)[0][:60]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t, generate(t, 1)[0])
			before := r.Refresh(t.Context())
			r.text = text
			r.Refresh(t.Context())
			if diff := cmp.Diff(before, r.Refresh(t.Context())); diff != "" {
				t.Errorf("keys (-before +after):\n%s", diff)
			}
			r.sign(t, subject)
			if lines := strings.Count(r.log.String(), "the former ones stay"); lines != 1 {
				t.Errorf("log has %d lines about the keys, want 1:\n%s", lines, r.log.String())
			}
		})
	}
}

func TestCheckKeys(t *testing.T) {
	t.Parallel()
	one := generate(t, 1)[0]
	const (
		parameters = `-----BEGIN EC PARAMETERS-----
BggqhkjOPQMBBw==
-----END EC PARAMETERS-----
`
		encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"
	)
	for name, tt := range map[string]struct{ text, want string }{
		"one":            {one, ""},
		"parameters":     {parameters + one, ""},
		"none":           {parameters, "there is no private key in PEM"},
		"empty":          {"", "there is no private key in PEM"},
		"twice":          {one + one, "a key occurs twice"},
		"rest":           {one + "-----BEGIN PRIVATE", "there is text that is not PEM"},
		"encrypted":      {encrypted, "a key is encrypted with a password, which is not supported"},
		"not PKCS #8":    {"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "a PRIVATE KEY is not valid PKCS #8"},
		"too many":       {strings.Join(generate(t, maxKeys+1), ""), "there are more than 8 keys"},
		"another curve":  {generateOn(t, elliptic.P384()), "a key is not on the curve P-256"},
		"as many as fit": {strings.Join(generate(t, maxKeys), ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := CheckKeys(tt.text); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("error = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://Shop.example/orders?a=b": "https://shop.example", "https://shop.example:443/": "https://shop.example",
		"http://shop.example:80": "http://shop.example", "http://shop.example:443": "http://shop.example:443",
		"http://[::1]:8090/x": "http://[::1]:8090", "https://[::1]": "https://[::1]",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Origin(u); got != want {
			t.Errorf("Origin(%s) = %s, want %s", text, got, want)
		}
	}
}
