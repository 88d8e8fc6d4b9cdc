package reference

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// documentation is the address of the folder docs. Descriptions that clients and editors show link
// to it.
const documentation = "https://github.com/perdure/perdure/blob/main/docs/"

// relative replaces the absolute links of descriptions by links between pages, for a page in
// docs/reference.
func relative(page string) string {
	return strings.NewReplacer("]("+documentation+"reference/", "](", "]("+documentation, "](../").Replace(page)
}

// Check compares a region of a page with the text that it must have. A region begins after the line
// "<!-- name: begin -->" and ends before the line "<!-- name: end -->". With update, Check writes
// the text into the page instead.
func Check(t *testing.T, page, name, want string, update bool) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- %s: begin -->\n", name), fmt.Sprintf("<!-- %s: end -->\n", name)
	before, rest, begins := strings.Cut(string(text), begin)
	got, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s does not have the lines %q and %q", page, begin, end)
	}
	if got == want {
		return
	}
	if !update {
		t.Fatalf("%s differs from the code; make docs rewrites it (-want +got):\n%s", page, cmp.Diff(want, got))
	}
	if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil { //nolint:gosec // a page that everybody reads
		t.Fatal(err)
	}
}
