package starter_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/starter"
)

// TestDefinitionsAreValid: the definitions of an agent and of a tool refer to known names only,
// also in one folder.
func TestDefinitionsAreValid(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "agents")
	for name, make := range map[string]func(string) ([]starter.File, error){"helper": starter.Agent, "get_order": starter.Tool} {
		files, err := make(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := starter.Write(dir, files); err != nil {
			t.Fatal(err)
		}
		if _, err := make("No Name"); err == nil || !strings.Contains(err.Error(), `"No Name"`) {
			t.Errorf("invalid name: got %v, want an error with it", err)
		}
	}
	folder, err := agents.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.CheckNames(agents.BuiltIn()); err != nil || len(folder.Agents) != 2 || len(folder.Tools) != 1 {
		t.Errorf("folder = %d agents, %d tools, %v, want 2 and 1", len(folder.Agents), len(folder.Tools), err)
	}
}

// TestWriteOverwritesNothing: if one file exists, no file is written.
func TestWriteOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine := filepath.Join(dir, "b", "mine")
	if err := errors.Join(os.Mkdir(filepath.Dir(mine), 0o700), os.WriteFile(mine, []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := starter.Write(dir, []starter.File{{Name: "a"}, {Name: "b/mine"}})
	if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), mine) {
		t.Errorf("existing file: got %v, want an error with it", err)
	}
	if text, err := os.ReadFile(mine); string(text) != "mine" {
		t.Errorf("existing file = %q, %v, want it unchanged", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("other file: got %v, want none", err)
	}
}
