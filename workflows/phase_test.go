package workflows

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPhasesMatchDiagram: the diagram in the documentation has exactly the transitions of
// the table.
func TestPhasesMatchDiagram(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/internals/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[string][]string{}
	for _, arrow := range regexp.MustCompile(`(?m)^  (\w+) --> (\w+)(?::|$)`).FindAllStringSubmatch(string(page), -1) {
		drawn[arrow[1]] = append(drawn[arrow[1]], arrow[2])
	}
	table := map[string][]string{}
	name := func(p phase) string { return strings.ReplaceAll(p.String(), " ", "_") }
	for _, from := range slices.Sorted(maps.Keys(transitions)) {
		for _, to := range transitions[from] {
			table[name(from)] = append(table[name(from)], name(to))
		}
	}
	if diff := cmp.Diff(table, drawn); diff != "" {
		t.Errorf("the diagram differs from the table (-table +diagram):\n%s", diff)
	}
}
