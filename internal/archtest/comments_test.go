package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// foreignNames are names of other projects that comments mention and no code of this one has.
var foreignNames = map[string]bool{
	"CanceledError": true, "ConfigMap": true, "EventSource": true, "GenerateContentResponse": true, "GitHub": true,
	"InProcessConnProvider": true, "JavaScript": true, "ListValue": true, "RetryInfo": true, "ErrorInfo": true,
	"useLangGraphInterrupt": true, "requestState": true, "Hijacker": true, "Marshaler": true, "Unmarshaler": true,
}

var (
	// mixedCaps matches a name in mixed caps, such as docLink or RuleUndefined.
	mixedCaps = regexp.MustCompile(`\b[A-Za-z]+[a-z][A-Z]\w*\b`)
	// docLink matches a link of a doc comment (go.dev/doc/comment), such as [watch.Receiver].
	docLink = regexp.MustCompile(`\[\*?([a-z]\w*\.)?([A-Z]\w*(?:\.[A-Z]\w*)?)\]`)
	// word matches what an identifier or a part of a text may consist of.
	word = regexp.MustCompile(`\w+`)
)

// TestCommentsNameWhatExists: a name in a comment is one of the code's. A comment that keeps the
// old name of something that was renamed sends its reader on a search that finds nothing.
func TestCommentsNameWhatExists(t *testing.T) {
	t.Parallel()
	known, comments := map[string]bool{}, map[string]*ast.CommentGroup{}
	files := token.NewFileSet()
	for _, p := range load(t) {
		for _, file := range p.ownFiles() {
			source, err := parser.ParseFile(files, filepath.Join(p.Dir, file), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			ast.Inspect(source, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					known[n.Name] = true
				case *ast.BasicLit:
					for _, w := range word.FindAllString(n.Value, -1) {
						known[w] = true
					}
				}
				return true
			})
			for _, group := range source.Comments {
				comments[files.Position(group.Pos()).String()] = group
			}
		}
	}
	for at, group := range comments {
		for _, name := range unknownNames(group.Text(), known) {
			t.Errorf("%s: the comment names %s, which no code has", at, name)
		}
	}
}

// unknownNames returns the names in a comment that are not known: those in mixed caps, and the
// parts of doc links. Plurals and the parts of test names are left out.
func unknownNames(comment string, known map[string]bool) []string {
	var unknown []string
	check := func(name string) {
		if !known[name] && !foreignNames[name] && !strings.HasPrefix(name, "Test") {
			unknown = append(unknown, name)
		}
	}
	for _, name := range mixedCaps.FindAllString(comment, -1) {
		check(name)
	}
	for _, link := range docLink.FindAllStringSubmatch(comment, -1) {
		for name := range strings.SplitSeq(link[2], ".") {
			check(name)
		}
	}
	return unknown
}

func TestUnknownNamesAreFound(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"closeLane": true, "Receiver": true}
	for comment, want := range map[string]int{
		"closeLane closes the lane.":                 0,
		"It is closed by shutLane.":                  1,
		"See [watch.Receiver] and [Receiver].":       0,
		"See [watch.Copy].":                          1,
		"[Log.Spoken] returns the newest, a list[i]": 2,
		"JavaScript has no integers.":                0,
	} {
		if got := unknownNames(comment, known); len(got) != want {
			t.Errorf("%q: unknown names %q, want %d", comment, got, want)
		}
	}
}
