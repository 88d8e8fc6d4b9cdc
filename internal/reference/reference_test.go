package reference_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/reference"
)

var update = flag.Bool("update", false, "rewrite the pages instead of comparing them")

func TestHTTPReference(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := reference.HTTP(document)
	if err != nil {
		t.Fatal(err)
	}
	undescribed(t, want)
	reference.Check(t, "../../docs/reference/http-api.md", "openapi", want, *update)
}

func TestDefinitionReference(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, kind := range []string{"agent", "tool", "mcp", "script"} {
		schema, err := os.ReadFile("../../agents/" + kind + ".schema.json")
		if err != nil {
			t.Fatal(err)
		}
		page, err := reference.Definition(schema)
		if err != nil {
			t.Fatal(err)
		}
		undescribed(t, page)
		pages = append(pages, page)
	}
	reference.Check(t, "../../docs/reference/definitions.md", "schemas", strings.Join(pages, "\n"), *update)
}

// undescribed returns the table rows without a description.
func undescribed(t *testing.T, page string) {
	t.Helper()
	for line := range strings.Lines(page) {
		if strings.HasSuffix(line, "|  |\n") {
			t.Errorf("%s has no description", line)
		}
	}
}
