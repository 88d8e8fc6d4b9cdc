package config_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/workers/assertion"
)

// TestAssertionKeys: the keys can be in a file, which is read at each use. Keys without an issuer,
// and texts that are no keys, are errors that do not show them.
func TestAssertionKeys(t *testing.T) {
	t.Parallel()
	key, err := assertion.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys.pem")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := load(t, config.Worker, nil, "PERDURE_ASSERTION_KEYS_FILE="+file, "PERDURE_PUBLIC_URL=HTTPS://Agents.example/")
	if cfg.PublicURL != "https://agents.example" || cfg.AssertionKeys() != strings.TrimSpace(string(key)) {
		t.Errorf("issuer = %s, keys = %q, want those of the environment", cfg.PublicURL, cfg.AssertionKeys())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := cfg.AssertionKeys(); got != "" {
		t.Errorf("keys without their file = %q, want none", got)
	}
	for want, environ := range map[string][]string{
		"PERDURE_PUBLIC_URL: must be set when PERDURE_ASSERTION_KEYS is": {"PERDURE_ASSERTION_KEYS=" + string(key)},
		"PERDURE_ASSERTION_KEYS: there is no private key in PEM":         {"PERDURE_ASSERTION_KEYS=\n", "PERDURE_PUBLIC_URL=https://agents.example"},
		"PERDURE_ASSERTION_KEYS: there is text that is not PEM":          {"PERDURE_ASSERTION_KEYS=s3cr3t", "PERDURE_PUBLIC_URL=https://agents.example"},
	} {
		if _, err := config.Load(config.Worker, nil, append(environ, nowhere), io.Discard); err == nil || err.Error() != want {
			t.Errorf("error = %v, want %s", err, want)
		}
	}
	if _, err := config.Load(config.Dev, nil, []string{"PERDURE_ASSERTION_KEYS=" + string(key), nowhere}, io.Discard); err != nil {
		t.Errorf("perdure dev: %v, want no error: its issuer is its address", err)
	}
}
