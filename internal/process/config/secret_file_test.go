package config_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/process/config"
)

// write writes a file and returns its path.
func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSecretsAreReadFromFiles(t *testing.T) {
	t.Parallel()
	dir, single := t.TempDir(), t.TempDir()
	write(t, dir, "OPENAI_API_KEY", "sk-of-the-folder\n")
	write(t, dir, "PERDURE_SECRET_SHOP", "folder")
	write(t, dir, "PERDURE_SECRET_TILL", "folder")
	write(t, dir, "PERDURE_LOG_LEVEL", "debug") // no secret
	c := load(t, config.Worker, nil, "PERDURE_SECRETS_DIR="+dir, "PERDURE_SECRET_SHOP_FILE="+write(t, single, "shop", "file"),
		"NATS_PASSWORD_FILE="+write(t, single, "nats", "swordfish\r\n"), "PERDURE_SECRET_TILL=variable", "TEMPORAL_API_KEY_FILE="+write(t, single, "temporal", "key"))
	for name, want := range map[string]string{
		"OPENAI_API_KEY": "sk-of-the-folder", "PERDURE_SECRET_SHOP": "file", "PERDURE_SECRET_TILL": "variable", "PERDURE_SECRET_GONE": "", "PERDURE_LOG_LEVEL": "",
	} {
		if got := c.Getenv(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if c.NATS.Password != "swordfish" || c.Temporal.Credentials == nil {
		t.Errorf("password of NATS = %q, credentials of Temporal: %t, want those of the files", c.NATS.Password, c.Temporal.Credentials != nil)
	}
	if want := []string{"sk-of-the-folder", "swordfish", "variable", "file", "key"}; !slices.Equal(c.Secrets(), want) {
		t.Errorf("secrets = %q, want %q", c.Secrets(), want)
	}
	if len(c.Unknown) > 0 {
		t.Errorf("unknown variables = %q, want none", c.Unknown)
	}
}

// TestSecretsFollowTheirFiles: a new value is used at once. Kubernetes replaces all files of a
// volume with one rename of a symbolic link.
func TestSecretsFollowTheirFiles(t *testing.T) {
	t.Parallel()
	volume := t.TempDir()
	swap := func(revision, value string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(volume, revision), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(volume, revision), "OPENAI_API_KEY", value)
		if err := errors.Join(os.Symlink(revision, filepath.Join(volume, "..next")), os.Rename(filepath.Join(volume, "..next"), filepath.Join(volume, "..data"))); err != nil {
			t.Fatal(err)
		}
	}
	swap("..1", "first")
	if err := os.Symlink(filepath.Join("..data", "OPENAI_API_KEY"), filepath.Join(volume, "OPENAI_API_KEY")); err != nil {
		t.Fatal(err)
	}
	c := load(t, config.Worker, nil, "PERDURE_SECRETS_DIR="+volume)
	for i, value := range []string{"first", "second"} {
		if i > 0 {
			swap("..2", value)
		}
		if got := c.Getenv("OPENAI_API_KEY"); got != value || !slices.Equal(c.Secrets(), []string{value}) {
			t.Errorf("key = %q of %q, want %s", got, c.Secrets(), value)
		}
	}
	write(t, volume, "PERDURE_SECRET_NEW", "created")
	if got := c.Getenv("PERDURE_SECRET_NEW"); got != "created" {
		t.Errorf("secret of a file that was created after the start = %q, want created", got)
	}
}

func TestUnreadableSecretsNameTheirVariable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, valid := write(t, dir, "empty", "\n"), write(t, dir, "valid", "x")
	large := write(t, dir, "large", strings.Repeat("x", 1<<20+1))
	folder := t.TempDir()
	write(t, folder, "OPENAI_API_KEY", "")
	for _, tt := range []struct {
		environ, variable, reason string
	}{
		{"OPENAI_API_KEY_FILE=" + dir + "/none", "OPENAI_API_KEY_FILE", dir + "/none: no such file"},
		{"PERDURE_SECRET_SHOP_FILE=" + empty, "PERDURE_SECRET_SHOP_FILE", empty + " is empty"},
		{"NATS_PASSWORD_FILE=" + large, "NATS_PASSWORD_FILE", "has more than 1048576 bytes"},
		{"GEMINI_API_KEY_FILE=" + dir, "GEMINI_API_KEY_FILE", "is a directory"},
		{"PERDURE_SECRET_TWICE_FILE=" + valid, "PERDURE_SECRET_TWICE_FILE", "must not be set when PERDURE_SECRET_TWICE is"},
		{"PERDURE_SECRETS_DIR=" + dir + "/none", "PERDURE_SECRETS_DIR", "no such file"},
		{"PERDURE_SECRETS_DIR=" + folder, "PERDURE_SECRETS_DIR", "OPENAI_API_KEY is empty"},
	} {
		_, err := config.Load(config.Worker, nil, []string{nowhere, tt.environ, "PERDURE_SECRET_TWICE=x"}, io.Discard)
		var bad *config.VariableError
		if !errors.As(err, &bad) || bad.Name != tt.variable || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s: got %v, want an error of %s with %q", tt.environ, err, tt.variable, tt.reason)
		}
	}
	if _, err := config.Load(config.API, nil, []string{nowhere, "PERDURE_SECRETS_DIR=" + folder}, io.Discard); err != nil {
		t.Errorf("API with an invalid secret of the worker: got %v, want no error", err)
	}
	write(t, folder, "PERDURE_SECRET_SHOP", "")
	c, err := config.Load(config.API, nil, []string{nowhere, "PERDURE_SECRETS_DIR=" + folder, "PERDURE_SECRET_TILL_FILE=" + dir + "/none", "PERDURE_SECRET_HOOK_FILE=" + valid}, io.Discard)
	if err != nil {
		t.Fatalf("API with invalid secrets of tools: got %v, want no error", err)
	}
	if got := c.Getenv("PERDURE_SECRET_HOOK"); got != "x" {
		t.Errorf("secret of a source of events = %q, want x", got)
	}
}

// TestSecretsOfTenants: the folder of secrets can have one for each tenant, which is read at each
// use.
func TestSecretsOfTenants(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cfg := load(t, config.Worker, nil, "PERDURE_SECRETS_DIR="+folder, "PERDURE_SECRET_SHOP=of-all", "PERDURE_SECRET_SHOP.initech=of-initech")
	if err := os.WriteFile(filepath.Join(folder, "PERDURE_SECRET_SHOP._41cme"), []byte("of-acme\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"PERDURE_SECRET_SHOP": "of-all", "PERDURE_SECRET_SHOP._41cme": "of-acme", "PERDURE_SECRET_SHOP.initech": "of-initech", "PERDURE_SECRET_SHOP.globex": "",
	} {
		if got := cfg.Getenv(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if got := cfg.Secrets(); !slices.Contains(got, "of-acme") || !slices.Contains(got, "of-initech") || len(cfg.Unknown) > 0 {
		t.Errorf("secrets to hide = %q, unknown variables = %q, want all secrets and no unknown ones", got, cfg.Unknown)
	}
}
