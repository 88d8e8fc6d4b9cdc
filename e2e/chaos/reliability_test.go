package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The comments on the page between which the matrix is.
const (
	matrixBegin = "<!-- matrix: begin -->\n"
	matrixEnd   = "<!-- matrix: end -->\n"
)

var reliabilityPage = filepath.Join("..", "docs", "internals", "reliability.md")

// table returns the matrix as on the page. Letters refer to the reasons why a fault cannot happen
// in a phase.
func (m *matrix) table() string {
	var b strings.Builder
	var reasons []string
	b.WriteString("| |")
	for _, ph := range phases {
		fmt.Fprintf(&b, " %s |", ph.name)
	}
	b.WriteString("\n|---|" + strings.Repeat(":-:|", len(phases)) + "\n")
	for _, f := range slices.Concat(processFaults, runFaults) {
		fmt.Fprintf(&b, "| %s |", f.name)
		for _, ph := range phases {
			c := m.cells[f.name][ph.name]
			if reason := f.excluded(ph); reason != "" {
				if !slices.Contains(reasons, reason) {
					reasons = append(reasons, reason)
				}
				c = cell('a' + rune(slices.Index(reasons, reason)))
			}
			fmt.Fprintf(&b, " %s |", c)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for i, reason := range reasons {
		fmt.Fprintf(&b, "- *%c*: %s\n", 'a'+rune(i), reason)
	}
	return b.String()
}

// splitPage splits the page at the table.
func splitPage() (before, table, after string, err error) {
	page, err := os.ReadFile(reliabilityPage)
	if err != nil {
		return "", "", "", err
	}
	before, rest, begun := strings.Cut(string(page), matrixBegin)
	table, after, ended := strings.Cut(rest, matrixEnd)
	if !begun || !ended {
		return "", "", "", errors.New("docs/internals/reliability.md has no place for the table")
	}
	return before, table, after, nil
}

// writeTable writes the table to the page.
func writeTable(table string) error {
	before, _, after, err := splitPage()
	if err != nil {
		return err
	}
	return os.WriteFile(reliabilityPage, []byte(before+matrixBegin+table+matrixEnd+after), 0o644)
}

// TestReliabilityPage checks that the page lists the faults and phases of the tests, and which of
// them can occur together.
func TestReliabilityPage(t *testing.T) {
	t.Parallel()
	m := newMatrix()
	for _, f := range slices.Concat(processFaults, runFaults) {
		for _, ph := range phases {
			m.set(f, ph, passed)
		}
	}
	_, table, _, err := splitPage()
	if err != nil {
		t.Fatal(err)
	}
	normalized := strings.NewReplacer(string(failed), string(passed), string(missed), string(passed)).Replace(table)
	if diff := cmp.Diff(m.table(), normalized); diff != "" {
		t.Errorf("table of the page; run make chaos ARGS=-update (-faults +page):\n%s", diff)
	}
}
