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
	return apikey.Load(name)
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
		"keys: []":                       "1 to 1000 entries",
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
		"keys:\n" + strings.Repeat("  - {sha256: "+secondDigest()+", subject: a}\n", 1001):     "1 to 1000 entries",
		"# " + strings.Repeat("x", 1<<20) + "\nkeys: [{key: " + annsKey + ", subject: a}]":     "at most 1048576 bytes",
	} {
		keys, err := load(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || keys != nil {
			t.Errorf("%.100s: %v, want %q in it", text, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), annsKey) || strings.Contains(err.Error(), "horse")) {
			t.Errorf("error = %v, want no key in it", err)
		}
	}
	if _, err := apikey.Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of a missing file: got %v, want %v", err, os.ErrNotExist)
	}
}
