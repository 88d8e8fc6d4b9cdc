package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestExampleInvoice: the invoice example prints the result that its guide shows.
func TestExampleInvoice(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "docs", "guides", "structured-runs.md"))
	if err != nil {
		t.Fatal(err)
	}
	const command = "```console\n$ perdure run invoice \"Ada owes 80 for a lamp, and 4.50 for shipping.\" -q --output json\n"
	_, want, ok := strings.Cut(string(guide), command)
	if !ok {
		t.Fatalf("the guide does not have %s", command)
	}
	want, _, _ = strings.Cut(want, "```")
	p := kit.StartExample(t, "invoice")
	c := p.StartCommand(t, "run", "--thread", kit.NewThreadOf(p), "invoice", "Ada owes 80 for a lamp, and 4.50 for shipping.", "-q", "--output", "json")
	if got := c.Finish(t, 0); got != want {
		t.Errorf("output:\n%s\nwant\n%s", got, want)
	}
}
