package kit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// StartExample starts a process with the agents of an example. Pairs of texts replace parts of
// their definitions, such as addresses.
func StartExample(t *testing.T, name string, replaced ...string) *Perdure {
	t.Helper()
	p := NewPerdure(filepath.Join(t.TempDir(), "data"), SharedModel)
	p.Agents = t.TempDir()
	file := filepath.Join("..", "examples", name, "agents", name+".yaml")
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(string(body), replaced[i]) {
			t.Fatalf("%s has no %s", file, replaced[i])
		}
	}
	text := strings.NewReplacer(replaced...).Replace(string(body))
	if err := os.WriteFile(filepath.Join(p.Agents, name+".yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.InspectAtEnd(t)
	p.Start(t)
	return p
}
