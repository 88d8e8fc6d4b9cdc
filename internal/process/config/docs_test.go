package config_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/process/config"
)

var update = flag.Bool("update", false, "write the table into docs/reference/configuration.md")

const (
	docsFile   = "../../../docs/reference/configuration.md"
	tableBegin = "<!-- variables: begin -->\n"
	tableEnd   = "<!-- variables: end -->\n"
)

func TestDocumentationFollowsTheTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), tableBegin)
	table, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", docsFile)
	}
	diff := cmp.Diff(config.Markdown(), table)
	if diff == "" {
		return
	}
	if !*update {
		t.Fatalf("docs/reference/configuration.md is behind; go test ./internal/process/config -update (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(docsFile, []byte(before+tableBegin+config.Markdown()+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
