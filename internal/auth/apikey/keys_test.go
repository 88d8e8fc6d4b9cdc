package apikey_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/apikey"
)

const (
	annsKey = "correct-horse-battery-staple"
	second  = "another.key~for/the+tests=="
)

// secondDigest returns the digest of the second key.
func secondDigest() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(second))) }

// load loads keys from a text.
func load(t *testing.T, text string) (*apikey.Keys, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := apikey.New(name)
	_, err := keys.Load()
	return keys, err
}

// requestWithKey returns a request with a key.
func requestWithKey(key string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/agents?key="+annsKey+"&access_token="+annsKey, nil)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return r
}

func TestKeysAreKnown(t *testing.T) {
	t.Parallel()
	for kind, text := range map[string]string{
		"YAML": "keys:\n  - {key: " + annsKey + ", tenant: shop, subject: ann, roles: [finance]}\n  - {sha256: " + secondDigest() + ", subject: bot}\n",
		"JSON": `{"keys": [{"key": "` + annsKey + `", "tenant": "shop", "subject": "ann", "roles": ["finance"]}, {"sha256": "` + strings.ToUpper(secondDigest()) + `", "subject": "bot"}]}`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			keys, err := load(t, text)
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range map[string]auth.Principal{
				annsKey: {Tenant: "shop", Subject: "ann", Roles: []string{"finance"}},
				second:  {Tenant: "default", Subject: "bot"},
			} {
				got, err := keys.Authenticate(requestWithKey(key))
				if err != nil || !cmp.Equal(got.Principal, want) || !got.Expires.IsZero() {
					t.Errorf("%+v, %v; want %+v", got, err, want)
				}
			}
			for key, want := range map[string]error{
				"": auth.ErrNoCredentials, annsKey + "x": auth.ErrInvalid, annsKey[1:]: auth.ErrInvalid, strings.ToUpper(annsKey): auth.ErrInvalid,
				secondDigest(): auth.ErrInvalid, // the stored digest is not itself a key
			} {
				if got, err := keys.Authenticate(requestWithKey(key)); !errors.Is(err, want) || got.Principal.Subject != "" {
					t.Errorf("key %q: got %+v, %v, want %v", key, got, err, want)
				}
			}
		})
	}
}

// TestInvalidKeyFilesAreRejected: a file with any mistake authenticates no caller, and no error
// contains a key.
func TestInvalidKeyFilesAreRejected(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               "must be a list under keys",
		"keys:":                          "must be a list under keys",
		"- key: " + annsKey:              "must be a list under keys",
		"keys: [" + annsKey + "]":        "must be a list under keys",
		"key: " + annsKey:                "must be a list under keys",
		"keys: [{subject: a}]":           "keys[0]: must have either key or sha256",
		"keys: [{key: " + annsKey + "}]": "keys[0]: subject is missing",
		"keys: [{key: " + annsKey + ", sha256: " + secondDigest() + ", subject: a}]":           "either key or sha256",
		"keys: [{key: short, subject: a}]":                                                     "at least 20 bytes",
		"keys: [{key: 'correct horse battery staple', subject: a}]":                            "only letters, digits",
		"keys: [{sha256: abc, subject: a}]":                                                    "64 hexadecimal digits",
		"keys: [{sha256: '" + strings.Repeat("zz", 32) + "', subject: a}]":                     "64 hexadecimal digits",
		"keys: [{key: " + annsKey + ", subject: a}, {key: " + annsKey + ", subject: b}]":       "keys[1]: repeats the key of an earlier entry",
		"keys: [{key: " + annsKey + ", subject: a, role: admin}]":                              "must be a list under keys",
		"keys: [{key: " + annsKey + ", subject: \"a\\u0000\"}]":                                "control characters",
		"keys: [{key: " + annsKey + ", subject: a, tenant: " + strings.Repeat("t", 257) + "}]": "more than 256",
		"keys:\n" + strings.Repeat("  - {sha256: "+secondDigest()+", subject: a}\n", 1001):     "at most 1000 entries",
		"keys: [{key: " + annsKey + ", subject: a, expires: tomorrow}]":                        "expires must be a time",
		"# " + strings.Repeat("x", 1<<20) + "\nkeys: [{key: " + annsKey + ", subject: a}]":     "at most 1048576 bytes",
	} {
		keys, err := load(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %q in it", text, err, want)
		}
		if _, err := keys.Authenticate(requestWithKey(annsKey)); !errors.Is(err, auth.ErrInvalid) {
			t.Errorf("%.100s: a key of the invalid file: got %v, want %v", text, err, auth.ErrInvalid)
		}
		if err != nil && (strings.Contains(err.Error(), annsKey) || strings.Contains(err.Error(), "horse")) {
			t.Errorf("error = %v, want no key in it", err)
		}
	}
	if _, err := apikey.New(filepath.Join(t.TempDir(), "none")).Load(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of a missing file: got %v, want %v", err, os.ErrNotExist)
	}
}

// TestChangedFileRevokesKeys: a key that the file has lost, or that has other rights, is revoked.
// The others stay valid without an interruption, and an invalid file changes nothing.
func TestChangedFileRevokesKeys(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "keys.yaml")
	keys := apikey.New(name)
	load := func(text string) error {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := keys.Load()
		return err
	}
	authenticate := func(key string) auth.Identity {
		t.Helper()
		identity, err := keys.Authenticate(requestWithKey(key))
		if err != nil {
			t.Fatal(err)
		}
		return identity
	}
	const ann, bot, admin = "{key: " + annsKey + ", subject: ann}", "{key: " + second + ", subject: bot}", "{key: " + second + ", subject: bot, roles: [admin]}"
	if err := load("keys: [" + ann + ", " + bot + "]"); err != nil {
		t.Fatal(err)
	}
	anns, bots := authenticate(annsKey), authenticate(second)
	if err := load("keys: [" + bot); err == nil {
		t.Error("an invalid file: got no error")
	}
	if err := load("keys: [" + admin + ", " + ann + "]"); err != nil {
		t.Fatal(err)
	}
	if anns.Valid.Err() != nil || bots.Valid.Err() == nil {
		t.Errorf("after a change of the second key: %v and %v, want only the second one to be revoked", anns.Valid.Err(), bots.Valid.Err())
	}
	if changed := authenticate(second); !changed.Principal.Has("admin") || changed.Valid.Err() != nil {
		t.Errorf("the changed key: got %+v, want its new role", changed)
	}
	if err := load("keys: []"); err != nil {
		t.Fatal(err)
	}
	if anns.Valid.Err() == nil {
		t.Error("the removed key is not revoked")
	}
	if _, err := keys.Authenticate(requestWithKey(annsKey)); !errors.Is(err, auth.ErrInvalid) {
		t.Errorf("the removed key: got %v, want %v", err, auth.ErrInvalid)
	}
}

func TestKeysExpire(t *testing.T) {
	t.Parallel()
	expiry := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	keys, err := load(t, fmt.Sprintf("keys:\n  - {key: %s, subject: ann, expires: %s}\n  - {key: %q, subject: bot, expires: \"2020-01-01T00:00:00+01:00\"}\n",
		annsKey, expiry.Format(time.RFC3339), second))
	if err != nil {
		t.Fatal(err)
	}
	if identity, err := keys.Authenticate(requestWithKey(annsKey)); err != nil || !identity.Expires.Equal(expiry) {
		t.Errorf("a key that expires later: got %v, %v, want %v", identity.Expires, err, expiry)
	}
	if _, err := keys.Authenticate(requestWithKey(second)); !errors.Is(err, auth.ErrExpired) {
		t.Errorf("an expired key: got %v, want %v", err, auth.ErrExpired)
	}
}
