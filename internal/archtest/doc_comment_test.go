package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocCommentsBeginWithTheName: the comment of a function or a type begins with its name, so a
// rename changes both.
func TestDocCommentsBeginWithTheName(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	check := func(name *ast.Ident, doc *ast.CommentGroup) {
		if first := firstWord(doc.Text()); first != "" && first != name.Name {
			t.Errorf("%s: the comment of %s begins with %q", files.Position(doc.Pos()), name.Name, first)
		}
	}
	for _, p := range load(t) {
		for _, file := range p.ownFiles() {
			source, err := parser.ParseFile(files, filepath.Join(p.Dir, file), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			for _, d := range source.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					check(d.Name, d.Doc)
				case *ast.GenDecl:
					if d.Tok == token.TYPE && !d.Lparen.IsValid() {
						check(d.Specs[0].(*ast.TypeSpec).Name, d.Doc)
					}
				}
			}
		}
	}
}

// firstWord returns the first word of a comment after an article, without punctuation.
func firstWord(comment string) string {
	words := strings.Fields(comment)
	if len(words) > 1 && (words[0] == "A" || words[0] == "An" || words[0] == "The") {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimRight(words[0], ":,."), "'s")
}
