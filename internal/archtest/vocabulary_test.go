package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retiredFiles are file names without a noun of the domain: they say when or where something
// happens, and not what it is.
var retiredFiles = []string{
	"beside", "crew", "late", "onward", "soft", "day", "keep", "heard", "leaf", "recall", "settled", "unbegun", "places",
	"past", "unseen", "asked",
}

// retiredWords are private words without a meaning in the domain. docs/concepts/terms.md has the
// terms.
var retiredWords = []string{"beside", "crew", "onward", "unbegun"}

func TestFilesAreNamedByNouns(t *testing.T) {
	t.Parallel()
	for _, p := range load(t) {
		for _, file := range p.ownFiles() {
			name := strings.TrimSuffix(strings.TrimSuffix(file, ".go"), "_test")
			if slices.Contains(retiredFiles, name) {
				t.Errorf("%s/%s: name the file after a noun of docs/concepts/terms.md", p.ImportPath, file)
			}
		}
	}
}

func TestIdentifiersHaveNoRetiredWords(t *testing.T) {
	t.Parallel()
	for _, p := range load(t) {
		for _, file := range p.ownFiles() {
			source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			ast.Inspect(source, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					if word := retiredIn(id.Name); word != "" {
						t.Errorf("%s/%s: %s has the private word %q: use a term of docs/concepts/terms.md", p.ImportPath, file, id.Name, word)
					}
				}
				return true
			})
		}
	}
}

// ownFiles returns the Go files of a package of ours, tests included.
func (p *pkg) ownFiles() []string {
	if !p.own() {
		return nil
	}
	return slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles)
}

var wordsOf = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]+`)

// retiredIn returns the retired word in an identifier; "" = none.
func retiredIn(identifier string) string {
	for _, word := range wordsOf.FindAllString(identifier, -1) {
		if word = strings.ToLower(word); slices.Contains(retiredWords, word) {
			return word
		}
	}
	return ""
}

func TestRetiredWordsAreFound(t *testing.T) {
	t.Parallel()
	for identifier, want := range map[string]string{"asksBeside": "beside", "crew": "crew", "TestUnbegun": "unbegun", "besides": "", "screw": ""} {
		if got := retiredIn(identifier); got != want {
			t.Errorf("in %s: %q, want %q", identifier, got, want)
		}
	}
}
