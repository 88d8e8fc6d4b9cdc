package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// errorCodes returns the codes of problems and of failed runs that occur in the code as literals,
// with their positions: arguments of problem.New, problem.BadRequest, problem.Unknown and failf,
// members named Code, and constants whose names begin with Code.
func errorCodes(t *testing.T) map[string]token.Position {
	t.Helper()
	codes, files := map[string]token.Position{}, token.NewFileSet()
	found := func(e ast.Expr, prefix string) {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if code, err := strconv.Unquote(l.Value); err == nil {
				codes[prefix+code] = files.Position(l.Pos())
			}
		}
	}
	inspect := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := ""
			switch f := n.Fun.(type) {
			case *ast.SelectorExpr:
				if of, ok := f.X.(*ast.Ident); ok && of.Name == "problem" {
					name = f.Sel.Name
				}
			case *ast.Ident:
				name = f.Name
			}
			switch {
			case name == "New" && len(n.Args) == 3:
				found(n.Args[1], "")
			case name == "BadRequest" && len(n.Args) == 3, name == "failf":
				found(n.Args[0], "")
			case name == "Unknown" && len(n.Args) == 2:
				found(n.Args[0], "unknown_")
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
				found(n.Value, "")
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if strings.HasPrefix(name.Name, "Code") && i < len(n.Values) {
					found(n.Values[i], "")
				}
			}
		}
		return true
	}
	for _, dir := range []string{"api", "runs", "stream", "workflows", "activities", "agents/pipeline", "llm"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, 0)
			if err == nil {
				ast.Inspect(file, inspect)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return codes
}

// TestErrorsAreDocumented: the reference lists every code that a client may get.
func TestErrorsAreDocumented(t *testing.T) {
	t.Parallel()
	var pages []byte
	for _, name := range []string{"errors.md", "websocket.md"} {
		page, err := os.ReadFile(filepath.Join("../../docs/reference", name))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page...)
	}
	codes := errorCodes(t)
	if len(codes) < 50 {
		t.Fatalf("number of codes = %d, want at least 50", len(codes))
	}
	for code, at := range codes {
		if !strings.Contains(string(pages), "`"+code+"`") {
			t.Errorf("%s: the code %q is missing in docs/reference/errors.md", at, code)
		}
	}
}
