package agents_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestWrongKindsDoNotCompile: an expression or step of the wrong kind is a compile error.
func TestWrongKindsDoNotCompile(t *testing.T) {
	t.Parallel()
	const frame = `package p
import "github.com/perdure/perdure/agents"
type plan struct { Queries []string; OK bool }
var made = agents.Ask[plan]("plan", agents.AgentStep{}, "")
var queries = agents.Field(made, &made.Out.Queries)
var group = agents.Sequence("group", agents.Steps{made})
var _ = `
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", exports(t))
	for source, want := range map[string]string{
		`agents.Until(agents.Field(made, &made.Out.OK))`:                                       "",
		`agents.Loop("x", 3, agents.Steps{group}, agents.Timeout(1))`:                          "",
		`agents.When(queries)`:                                                                 "does not implement agents.Value[bool]",
		`agents.Until(made)`:                                                                   "does not implement agents.Value[bool]",
		`agents.Each("x", made)`:                                                               "does not match",
		`agents.Field(made, &made.Out.Answer)`:                                                 "made.Out.Answer undefined",
		`agents.Field(group, &made.Out.OK)`:                                                    "does not implement agents.Reference",
		`agents.Equal(queries, "x")`:                                                           "cannot use",
		`agents.Equal(agents.Field(made, &made.Out.OK), "x")`:                                  "bool",
		`agents.Call[string]("x", "t", nil, agents.Repairs(1))`:                                "does not implement agents.Option",
		`agents.Map("x", agents.Each("", queries), nil, agents.Until(agents.Expr[bool]("x")))`: "does not implement agents.BranchOption",
		`agents.Approve("x", "?", agents.Branches{})`:                                          "does not implement agents.ApproveOption",
		`agents.Ask[string]("x", agents.AgentStep{}, "", agents.Args{})`:                       "does not implement agents.AskOption",
		`agents.Steps{queries}`:                                                                "does not implement agents.Stepper",
	} {
		file, err := parser.ParseFile(fset, "p.go", frame+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = (&types.Config{Importer: imports}).Check("p", fset, []*ast.File{file}, nil)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: got %v, want no error", source, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want an error that it %s", source, err, want)
		}
	}
}

// exports finds the compiler's export data of a package.
func exports(t *testing.T) importer.Lookup {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}
