package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Bounds of a file and of a function, in lines.
const (
	maxLines         = 500
	maxTestLines     = 900
	maxFunctionLines = 120
)

// mayPanic lists the packages that may panic, with the place that recovers.
var mayPanic = map[string]string{
	"internal/process/devserver": "Temporal's logger has to; Start turns it into an error",
}

func TestEveryPackageHasADocComment(t *testing.T) {
	t.Parallel()
	for path, p := range load(t) {
		if p.own() && p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package documentation", path)
		}
	}
}

func TestFilesStayReadable(t *testing.T) {
	t.Parallel()
	for _, p := range load(t) {
		if !p.own() {
			continue
		}
		checkLines(t, p, p.GoFiles, maxLines)
		checkLines(t, p, append(p.TestGoFiles, p.XTestGoFiles...), maxTestLines)
	}
}

// checkLines finds files that are too long.
func checkLines(t *testing.T, p *pkg, files []string, most int) {
	t.Helper()
	for _, name := range files {
		source, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if n := bytes.Count(source, []byte{'\n'}); n > most {
			t.Errorf("%s/%s has %d lines, more than %d: split it by subject", p.ImportPath, name, n, most)
		}
		checkFunctions(t, filepath.Join(p.Dir, name), source)
	}
}

// checkFunctions finds functions that are too long. Tables of tests belong in variables.
func checkFunctions(t *testing.T, name string, source []byte) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := files.Position(f.End()).Line - files.Position(f.Pos()).Line; n > maxFunctionLines {
			t.Errorf("%s: %s has %d lines, more than %d", files.Position(f.Pos()), f.Name.Name, n, maxFunctionLines)
		}
	}
}

func TestLibrariesDoNotPanic(t *testing.T) {
	t.Parallel()
	for path, p := range load(t) {
		if !p.own() || p.Name == "main" || testKit(path) || mayPanic[strings.TrimPrefix(path, module+"/")] != "" {
			continue
		}
		for _, name := range p.GoFiles {
			checkPanics(t, filepath.Join(p.Dir, name))
		}
	}
}

// checkPanics finds calls of panic.
func checkPanics(t *testing.T, name string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "panic" {
			t.Errorf("%s: a library panics: return an error instead", files.Position(call.Pos()))
		}
		return true
	})
}
