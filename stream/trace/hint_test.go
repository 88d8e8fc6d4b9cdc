package trace

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// withoutHint are codes that no trace has: they are for certain readers, or for Temporal only.
var withoutHint = []string{"abandoned", "cancelled", "not_compensated"}

// TestEveryCodeHasAHint: the trace tells what to do about each code of a failed run, step or attempt in
// the reference, and has hints for no other code.
func TestEveryCodeHasAHint(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sections, ok := strings.Cut(string(page), "\n## Codes of `RUN_ERROR`\n")
	if !ok {
		t.Fatal("the reference has no codes of RUN_ERROR")
	}
	code := regexp.MustCompile("`([a-z_]+)`")
	documented := map[string]bool{"log_unavailable": true} // is documented with the problems
	for line := range strings.SplitSeq(sections, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, match := range code.FindAllStringSubmatch(cells[1], -1) {
			documented[match[1]] = true
		}
	}
	delete(documented, "code") // the title of the column
	for name := range documented {
		if (hints[name] == "") != slices.Contains(withoutHint, name) {
			t.Errorf("code %s: hint %q, want one for each code that a trace has", name, hints[name])
		}
	}
	for name := range hints {
		if !documented[name] {
			t.Errorf("the code %s has a hint, and is not in the reference", name)
		}
	}
}
