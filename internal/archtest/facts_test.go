package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	// goExpression is a text that begins with a Go expression, or has a call or an index.
	goExpression = regexp.MustCompile(`^(.*: )?[A-Za-z]\w*(\.[A-Za-z]\w*|\[\w+\]|\(.*\))+($| = | is )|\w(\(|\[)|(^| )\[\w+\]`)
	// leadingArticle is the name of a test that begins with an article.
	leadingArticle = regexp.MustCompile(`^Test(A|An|The)[A-Z][a-z]`)
)

// TestFactsNameWhatIsCompared: a failure names what is compared in English. A reader does not open
// the test to learn what f.calls[1].ID is.
func TestFactsNameWhatIsCompared(t *testing.T) {
	t.Parallel()
	for _, p := range load(t) {
		if !p.own() {
			continue
		}
		for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if leadingArticle.MatchString(n.Name.Name) {
						t.Errorf("%s: %s begins with an article", files.Position(n.Pos()), n.Name.Name)
					}
				case *ast.CallExpr:
					if fact := factOf(n); goExpression.MatchString(fact) {
						t.Errorf("%s: the fact %q is a Go expression: name in English what is compared", files.Position(n.Pos()), fact)
					}
				}
				return true
			})
		}
	}
}

// factOf returns the fact of a comparison: the second argument of wantEqual, mustEqual, wantStatus
// and mustStatus. It is "" for other calls and for facts without a literal.
func factOf(call *ast.CallExpr) string {
	function := call.Fun
	if index, ok := function.(*ast.IndexExpr); ok {
		function = index.X
	}
	var name string
	switch f := function.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	switch name {
	case "wantEqual", "mustEqual", "wantStatus", "mustStatus":
		if len(call.Args) > 2 {
			return literalIn(call.Args[1])
		}
	}
	return ""
}

// literalIn returns the text of an expression: of a literal, the parts of a sum, or the format of a
// call.
func literalIn(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return literalIn(e.X) + literalIn(e.Y)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" && len(e.Args) > 0 {
			return literalIn(e.Args[0])
		}
	}
	return ""
}

func TestExpressionsInFactsAreFound(t *testing.T) {
	t.Parallel()
	for fact, want := range map[string]bool{
		"f.calls": true, "a.body": true, "run %d: n.Segment()": true, "len(events)": true, `names["left"]`: true, "results: [2]": true,
		"number of events": false, "%s: problem code": false, "state of v1.0": false, "log of GET /v1/agents": false, "last event is RUN_ERROR": false,
	} {
		if got := goExpression.MatchString(fact); got != want {
			t.Errorf("%q is a Go expression = %t, want %t", fact, got, want)
		}
	}
	for name, want := range map[string]bool{"TestAToolAsks": true, "TestTheLog": true, "TestAPIIsKilled": false, "TestThread": false, "TestAnswer": false} {
		if got := leadingArticle.MatchString(name); got != want {
			t.Errorf("%s begins with an article = %t, want %t", name, got, want)
		}
	}
	call, err := parser.ParseExpr(`mustEqual[any](t, fmt.Sprintf("%s: ", "x")+"n.Count", n.Count, 1)`)
	if err != nil {
		t.Fatal(err)
	}
	if fact := factOf(call.(*ast.CallExpr)); !strings.HasSuffix(fact, "n.Count") {
		t.Errorf("fact = %q, want suffix %q", fact, "n.Count")
	}
}
