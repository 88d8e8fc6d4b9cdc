package operator_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"github.com/perdure/perdure/internal/encryption"
	"github.com/perdure/perdure/internal/encryption/operator"
)

// none is an environment without variables.
func none(string) string { return "" }

// open opens keys, which must be valid.
func open(t *testing.T, urls string, getenv func(string) string) []encryption.OperatorKey {
	t.Helper()
	keys, err := operator.Open(t.Context(), urls, getenv)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return keys
}

// base64Key returns the URL of a new key.
func base64Key() string {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	return "base64key://" + base64.URLEncoding.EncodeToString(key[:])
}

// keysetFile writes a new keyset to a file, and returns its URL.
func keysetFile(t *testing.T) string {
	t.Helper()
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&body)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "keyset.json")
	if err := os.WriteFile(name, body.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + name
}

// vault is a server with the routes of Vault's secrets engine transit that encrypt and decrypt. It
// keeps the plaintexts, and its ciphertexts are their numbers.
type vault struct {
	mu     sync.Mutex
	plain  []string
	denied bool
}

// start starts the server, and returns the environment of its clients.
func (v *vault) start(t *testing.T) func(string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/transit/encrypt/perdure", func(w http.ResponseWriter, r *http.Request) {
		v.answer(t, w, r, func(in map[string]string) map[string]string {
			v.plain = append(v.plain, in["plaintext"])
			return map[string]string{"ciphertext": "vault:v1:" + strings.Repeat("x", len(v.plain))}
		})
	})
	mux.HandleFunc("PUT /v1/transit/decrypt/perdure", func(w http.ResponseWriter, r *http.Request) {
		v.answer(t, w, r, func(in map[string]string) map[string]string {
			return map[string]string{"plaintext": v.plain[len(strings.TrimPrefix(in["ciphertext"], "vault:v1:"))-1]}
		})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	environ := map[string]string{"VAULT_ADDR": s.URL, "VAULT_TOKEN": "token-of-perdure"}
	return func(name string) string { return environ[name] }
}

// answer answers one request of a client with the right token.
func (v *vault) answer(t *testing.T, w http.ResponseWriter, r *http.Request, to func(map[string]string) map[string]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.Header.Get("X-Vault-Token") != "token-of-perdure" || v.denied {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"errors":["permission denied"]}`))
		return
	}
	var in map[string]string
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		t.Errorf("request to Vault: %v", err)
		return
	}
	if err := json.NewEncoder(w).Encode(map[string]any{"data": to(in)}); err != nil {
		t.Errorf("response of Vault: %v", err)
	}
}

// TestKeys: keys of every kind decrypt what they have encrypted, also after they are opened again.
// Different keys have different IDs.
func TestKeys(t *testing.T) {
	t.Parallel()
	getenv := new(vault).start(t)
	ids := map[string]string{}
	for _, url := range []string{base64Key(), base64Key(), keysetFile(t), "hashivault://perdure"} {
		first, again := open(t, url, getenv)[0], open(t, url+"\n", getenv)[0]
		ciphertext, err := first.Keeper.Encrypt(t.Context(), []byte("a key of a tenant"))
		if err != nil {
			t.Fatalf("%.12s: encrypt: %v", url, err)
		}
		plain, err := again.Keeper.Decrypt(t.Context(), ciphertext)
		if string(plain) != "a key of a tenant" || err != nil {
			t.Errorf("%.12s: decrypt = %q, %v", url, plain, err)
		}
		if bytes.Contains(ciphertext, []byte("a key")) {
			t.Errorf("%.12s: the ciphertext has the plaintext", url)
		}
		if other := ids[first.ID]; other != "" || first.ID != again.ID || strings.Contains(url, first.ID) {
			t.Errorf("ID of %.12s = %q, then %q: want the same, not that of %.12s, and no part of the key", url, first.ID, again.ID, other)
		}
		ids[first.ID] = url
	}
}

// TestVaultRefuses: an error of Vault is one of the key, with Vault's reason.
func TestVaultRefuses(t *testing.T) {
	t.Parallel()
	v := &vault{denied: true}
	key := open(t, "hashivault://perdure", v.start(t))[0]
	if _, err := key.Keeper.Encrypt(context.Background(), []byte("x")); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("encrypt: got %v, want permission denied", err)
	}
}

// TestInvalidKeys: an error says what is wrong, and does not contain the key.
func TestInvalidKeys(t *testing.T) {
	t.Parallel()
	const secret = "c2VjcmV0"
	for urls, want := range map[string]string{
		"":                                "must have a key",
		secret:                            "key 1: must begin with one of base64key://",
		"base64key://" + secret:           "key 1: base64key:// must have 32 bytes",
		"base64key://":                    "key 1: base64key:// must have 32 bytes",
		base64Key() + " ftp://" + secret:  "key 2: must begin with one of",
		"file://" + secret:                "key 1: must be the path of a keyset",
		"file:///does/not/exist":          "key 1: open /does/not/exist",
		"hashivault://":                   "key 1: hashivault:// must have the name of a key",
		"hashivault://perdure":            "key 1: hashivault:// needs VAULT_ADDR and VAULT_TOKEN",
		"base64key://%zz" + secret + "\n": "key 1: is not a URL",
	} {
		_, err := operator.Open(t.Context(), urls, none)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("Open(%q): got %v, want %q", urls, err, want)
		}
	}
}
