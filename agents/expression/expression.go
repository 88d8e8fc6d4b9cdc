package expression

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	lru "github.com/hashicorp/golang-lru/v2"
)

// This file compiles and evaluates CEL expressions. Compilation happens when a definition is
// validated and again at each evaluation, so compiled expressions are cached.

// Max bounds the length of an expression, in bytes.
const Max = 4 << 10

// maxCost bounds the cost of one evaluation, in CEL's unit (about one operation).
const maxCost = 300_000

// maxKept bounds the cache of compiled expressions. The expressions of a map step are evaluated for
// every item.
const maxKept = 1000

// Steps is the variable that has the outputs of steps as members.
const Steps = "steps"

// standard are the variables of every expression.
var standard = []string{"input", "messages", "state", Steps, "caller"}

// reserved are the reserved words of CEL.
var reserved = []string{
	"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
	"namespace", "null", "package", "return", "true", "var", "void", "while",
}

// emptyEnv returns the CEL environment with the functions of expressions, without variables. It is
// made once.
var emptyEnv = sync.OnceValues(func() (*cel.Env, error) { return cel.NewEnv(boundedStrings()) })

// standardEnv returns emptyEnv with the standard variables. It is made once.
var standardEnv = sync.OnceValues(func() (*cel.Env, error) {
	env, err := emptyEnv()
	if err != nil {
		return nil, err
	}
	return env.Extend(declarations(standard)...)
})

// declarations declares variables of any type.
func declarations(names []string) []cel.EnvOption {
	options := make([]cel.EnvOption, len(names))
	for i, name := range names {
		options[i] = cel.Variable(name, cel.DynType)
	}
	return options
}

// Standard returns the names of the variables of every expression. The caller must not change the
// slice.
func Standard() []string { return standard }

// Free reports whether a definition may use a name for a variable of its own.
func Free(name string) bool {
	return !slices.Contains(standard, name) && !slices.Contains(reserved, name)
}

// Expression is a compiled CEL expression. It is safe for concurrent use.
type Expression struct {
	source  string
	program cel.Program
	// steps are the steps that the expression refers to, output is the type of its value as far as
	// CEL can infer it.
	steps  []string
	output *cel.Type
}

// compiledCache returns the cache of compiled expressions, by variables and source. It is safe for
// concurrent use.
var compiledCache = sync.OnceValue(func() *lru.Cache[string, *Expression] {
	cache, _ := lru.New[string, *Expression](maxKept) // fails only for a size of zero
	return cache
})

// Compile compiles an expression with the standard variables (input, messages, state, steps and
// caller) and those of more. The result may be shared with other callers.
func Compile(source string, more ...string) (*Expression, error) {
	return Scope{more: more}.Compile(source)
}

// Scope is a set of variables that expressions may use. The zero Scope has the standard variables.
// It is safe for concurrent use.
type Scope struct {
	more       []string // variables beyond the standard ones, or all of them if isComplete
	isComplete bool
}

// ScopeOf returns the scope with these variables only, without the standard ones.
func ScopeOf(names ...string) Scope { return Scope{more: names, isComplete: true} }

// StandardScope returns the scope with the standard variables and those of more.
func StandardScope(more ...string) Scope { return Scope{more: more} }

// Compile compiles an expression. The result may be shared with other callers.
func (s Scope) Compile(source string) (*Expression, error) {
	if len(source) > Max {
		return nil, fmt.Errorf("the expression has more than %d bytes", Max)
	}
	// The variables are part of the key: a name may be a variable in one place and unknown in
	// another.
	key := strings.Join(s.more, ",") + ":" + source
	if s.isComplete {
		key = "=" + key
	}
	if e, ok := compiledCache().Get(key); ok {
		return e, nil
	}
	e, err := s.compile(source)
	if err == nil {
		compiledCache().Add(key, e)
	}
	return e, err
}

// compile is Compile without the cache.
func (s Scope) compile(source string) (*Expression, error) {
	base := standardEnv
	if s.isComplete {
		base = emptyEnv
	}
	env, err := base()
	if err == nil && len(s.more) > 0 {
		env, err = env.Extend(declarations(s.more)...)
	}
	if err != nil {
		return nil, fmt.Errorf("expression: %w", err)
	}
	checked, issues := env.Compile(source)
	if issues.Err() != nil {
		// The rest of the text shows the expression with a mark below it.
		first, _, _ := strings.Cut(strings.TrimPrefix(issues.Err().Error(), "ERROR: <input>:"), "\n")
		return nil, errors.New(strings.TrimSuffix(first, " (in container '')"))
	}
	program, err := env.Program(checked, Bounds(maxCost)...)
	if err != nil {
		return nil, fmt.Errorf("expression: %w", err)
	}
	return &Expression{source: source, program: program, steps: stepsIn(checked.NativeRep().Expr()), output: checked.OutputType()}, nil
}

// Steps returns the names of the steps whose outputs the expression uses, sorted, each once.
func (e *Expression) Steps() []string { return e.steps }

// MayBeBool reports whether the value can be a boolean, as far as CEL infers its type.
func (e *Expression) MayBeBool() bool { return e.mayBe(types.BoolKind) }

// MayBeList reports whether the value can be a list, as far as CEL infers its type.
func (e *Expression) MayBeList() bool { return e.mayBe(types.ListKind) }

// mayBe reports whether the type is of a kind or known only at run time.
func (e *Expression) mayBe(kind types.Kind) bool {
	return e.output.Kind() == kind || e.output.Kind() == types.DynKind
}

// Value evaluates the expression. Variables and the value have the types of [Decode]. Errors
// contain no values.
func (e *Expression) Value(variables map[string]any) (any, error) {
	value, _, err := e.program.Eval(variables)
	if err != nil {
		return nil, e.explain(err)
	}
	return plain(value)
}

// Holds evaluates an expression whose value is a boolean.
func (e *Expression) Holds(variables map[string]any) (bool, error) {
	value, err := e.Value(variables)
	if err != nil {
		return false, err
	}
	holds, ok := value.(bool)
	if !ok {
		return false, fmt.Errorf("the value is %s, not true or false", describe(value))
	}
	return holds, nil
}

// List evaluates an expression whose value is a list.
func (e *Expression) List(variables map[string]any) ([]any, error) {
	value, err := e.Value(variables)
	if err != nil {
		return nil, err
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("the value is %s, not a list", describe(value))
	}
	return list, nil
}

var missingKey = regexp.MustCompile(`no such key: (.*)`)

// explain returns an error without content, because CEL quotes values in some errors. A missing key
// is named only if the expression itself contains its name.
func (e *Expression) explain(err error) error {
	message := err.Error()
	if key := missingKey.FindStringSubmatch(message); key != nil && strings.Contains(e.source, key[1]) {
		return fmt.Errorf("there is no key %q", key[1])
	}
	for _, harmless := range []struct{ contains, words string }{
		{"no such key", "a key is missing"},
		{"no such overload", "an operator or function does not fit its values"},
		{"cost limit", "the expression is too costly"},
		{"too long", "a text is too long"},
		{"too large", "a compared value is too large"},
		{"out of bounds", "an index is out of bounds"},
		{"out of range", "a number is out of range"},
		{"division by zero", "division by zero"},
		{"modulus by zero", "division by zero"},
		{"overflow", "a number is too large"},
	} {
		if strings.Contains(message, harmless.contains) {
			return errors.New(harmless.words)
		}
	}
	return errors.New("the expression cannot be evaluated")
}

// stepsIn returns the names in steps.name and steps["name"], sorted, each once.
func stepsIn(root ast.Expr) []string {
	var names []string
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			if s := e.AsSelect(); isSteps(s.Operand()) {
				names = append(names, s.FieldName())
			}
		// steps["name"] is a call of the index operator. A computed index cannot be checked and is
		// ignored.
		case ast.CallKind:
			c := e.AsCall()
			if c.FunctionName() != operators.Index || !isSteps(c.Args()[0]) || c.Args()[1].Kind() != ast.LiteralKind {
				return
			}
			if name, ok := c.Args()[1].AsLiteral().Value().(string); ok {
				names = append(names, name)
			}
		}
	}))
	slices.Sort(names)
	return slices.Compact(names)
}

// isSteps reports whether an expression is the variable steps.
func isSteps(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == Steps }
