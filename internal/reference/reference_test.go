package reference_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

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
		unguided(t, page)
		pages = append(pages, page)
	}
	reference.Check(t, "../../docs/reference/definitions.md", "schemas", strings.Join(pages, "\n"), *update)
}

// TestCodesOfOperationsAreDocumented: the page of errors has each code that the OpenAPI document
// lists for an operation, in a row of its status.
func TestCodesOfOperationsAreDocumented(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Paths map[string]map[string]yaml.Node `yaml:"paths"`
	}
	if err := yaml.Unmarshal(document, &api); err != nil {
		t.Fatal(err)
	}
	found := 0
	for path, operations := range api.Paths {
		for method, n := range operations {
			var operation struct {
				Codes []string `yaml:"x-codes"`
			}
			if method == "parameters" {
				continue
			}
			if err := n.Decode(&operation); err != nil {
				t.Fatal(err)
			}
			for _, entry := range operation.Codes {
				found++
				status, code, _ := strings.Cut(entry, " ")
				row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(status) + ` \| [^|]*` + "`" + regexp.QuoteMeta(code) + "`")
				if !row.Match(page) {
					t.Errorf("%s %s: docs/reference/errors.md has no %s, want it", method, path, entry)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("number of codes = %d, want at least 50", found)
	}
}

// undescribed returns the table rows without a description.
func undescribed(t *testing.T, page string) {
	t.Helper()
	for line := range strings.Lines(page) {
		if strings.HasSuffix(line, "|  |\n") {
			t.Errorf("%s: got no description, want one", line)
		}
	}
}

// keyOfAgent matches the row of a key of an agent or of a step, without the keys of its objects.
var keyOfAgent = regexp.MustCompile("^\\| `(\\w+)`")

// unguided finds the keys of agents and steps whose description does not link to the page that uses
// them.
func unguided(t *testing.T, page string) {
	t.Helper()
	if !strings.HasPrefix(page, "## Perdure agent\n") {
		return
	}
	for line := range strings.Lines(page) {
		if key := keyOfAgent.FindStringSubmatch(line); key != nil && key[1] != "kind" && key[1] != "name" && !strings.Contains(line, "](../") {
			t.Errorf("the description of %s does not link to a guide", key[1])
		}
	}
}
