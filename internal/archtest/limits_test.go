package archtest

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// constants evaluates the numeric constants of packages without compiling them.
type constants struct {
	t *testing.T
	// of has the expressions of the constants, by the package's folder and the constant's name.
	of map[string]map[string]ast.Expr
}

// read returns the constants of a package.
func (c *constants) read(dir string) map[string]ast.Expr {
	c.t.Helper()
	if known, ok := c.of[dir]; ok {
		return known
	}
	files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
	if err != nil {
		c.t.Fatal(err)
	}
	known := map[string]ast.Expr{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			c.t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			for i := 0; ok && i < min(len(spec.Names), len(spec.Values)); i++ {
				known[spec.Names[i].Name] = spec.Values[i]
			}
			return true
		})
	}
	c.of[dir] = known
	return known
}

// value evaluates a constant expression of a package; durations are in nanoseconds. It returns nil
// if the expression contains anything except numbers, constants of the same package, units of
// package time, and operators.
func (c *constants) value(dir string, e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return c.value(dir, e.X)
	case *ast.Ident:
		if of := c.read(dir)[e.Name]; of != nil {
			return c.value(dir, of)
		}
	case *ast.SelectorExpr:
		units := map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}
		if unit := units[e.Sel.Name]; unit > 0 {
			return constant.MakeInt64(int64(unit))
		}
	case *ast.BinaryExpr:
		x, y := c.value(dir, e.X), c.value(dir, e.Y)
		if x == nil || y == nil {
			return nil
		}
		if e.Op == token.SHL {
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(n))
		}
		return constant.BinaryOp(x, e.Op, y)
	}
	return nil
}

// renderings returns the texts that represent a number in the documentation: with commas, in binary
// units, or as a duration.
func renderings(n int64) []string {
	list := []string{grouped(n)}
	for _, u := range []struct {
		size int64
		name string
	}{
		{1 << 10, "KiB"}, {1 << 20, "MiB"}, {int64(time.Millisecond), "ms"}, {int64(time.Second), "s"}, {int64(time.Minute), "min"},
		{int64(time.Hour), "h"}, {24 * int64(time.Hour), "days"},
	} {
		if n%u.size == 0 {
			list = append(list, fmt.Sprintf("%d %s", n/u.size, u.name))
		}
	}
	return list
}

// grouped writes a number with commas between thousands.
func grouped(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

var taggedLimit = regexp.MustCompile(`([^ |(]+(?: (?:KiB|MiB|ms|s|min|h|days))?)<!-- ([\w/]+)\.(\w+) -->`)

// TestLimitsAreThoseOfTheCode: each number of the limits page that names a constant in a comment
// has that constant's value.
func TestLimitsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	c := &constants{t, map[string]map[string]ast.Expr{}}
	tags := taggedLimit.FindAllStringSubmatch(string(page), -1)
	if all := strings.Count(string(page), "<!-- "); len(tags) != all || all < 100 {
		t.Fatalf("comments with a constant = %d, want all %d, and at least 100", len(tags), all)
	}
	for _, tag := range tags {
		shown, dir, name := tag[1], tag[2], tag[3]
		e := c.read(dir)[name]
		value := constant.Value(nil)
		if e != nil {
			value = c.value(dir, e)
		}
		if value == nil {
			t.Errorf("%s is no constant", path.Join(dir, name))
			continue
		}
		n, _ := constant.Int64Val(constant.ToInt(value))
		if !slices.Contains(renderings(n), shown) {
			t.Errorf("%s.%s: the page shows %q, want one of %q", dir, name, shown, renderings(n))
		}
	}
}
