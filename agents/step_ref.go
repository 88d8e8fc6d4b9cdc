package agents

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/perdure/perdure/agents/expression"
)

// Ref is the value of an expression, which is a T: what a step has put out, a member of that, an item. It is
// the expression and not the value: steps have their values when they run, a program when it asks for them.
type Ref[T any] struct {
	// Out is no value either. It is there for pointers to its fields to be given to [Field].
	Out *T

	source string
}

// Reference is a [Ref] of any type.
type Reference interface {
	// Expr is the expression, for others that look at the value.
	Expr() string
	// String is the template that is the value, such as ${steps.plan}. Mind that a dollar sign right before it
	// makes it mean itself.
	String() string
	shape() any
}

// Value is a [Ref] of one type, or what has one: a [StepOf] or an [Item].
type Value[T any] interface {
	Reference
	ref() Ref[T]
}

// Expr is what an expression in CEL comes to. Whether it is one, and looks at nothing that is not there, is checked by
// [New]; that it comes to a T is the author's word.
func Expr[T any](source string) Ref[T] { return Ref[T]{new(T), source} }

// Expr is the expression.
func (r Ref[T]) Expr() string { return r.source }

func (r Ref[T]) String() string { return "${" + r.source + "}" }

// MarshalText makes the reference a template in JSON.
func (r Ref[T]) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r Ref[T]) shape() any  { return r.Out }
func (r Ref[T]) ref() Ref[T] { return r }

// Field is a field of a value that is a struct, by a pointer into its Out:
//
//	agents.Field(plan, &plan.Out.Queries)
//
// It goes by its json name, and may be a field of a field. A pointer to anything else is no reference: [New] says so.
func Field[F any](of Reference, field *F) Ref[F] {
	names := pathTo(reflect.ValueOf(of.shape()), reflect.ValueOf(field))
	if names == nil {
		return Ref[F]{field, "no_such_field_of_" + notInNames.ReplaceAllString(of.Expr(), "_")}
	}
	return Ref[F]{field, memberOf(of.Expr(), names...)}
}

// Member is a member of a value that no Go type describes, or a member of a member: Member[string](order, "address", "city").
func Member[T any](of Reference, names ...string) Ref[T] {
	return Expr[T](memberOf(of.Expr(), names...))
}

// Equal tells whether a value is equal to one that is known.
func Equal[T ~string | ~bool | ~int | ~int64 | ~float64](value Value[T], to T) Ref[bool] {
	literal, err := plainJSON(to)
	if err != nil { // no finite number
		literal = fmt.Append(nil, to)
	}
	return Expr[bool](operand(value.Expr()) + " == " + string(literal))
}

var (
	simple     = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*(\.[a-zA-Z_][a-zA-Z0-9_]*|\["[^"\\]*"\]|\[\d+\])*$`)
	identifier = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	notInNames = regexp.MustCompile(`[^a-zA-Z0-9]+`)
)

// operand is an expression as a part of another.
func operand(source string) string {
	if simple.MatchString(source) {
		return source
	}
	return "(" + source + ")"
}

func memberOf(source string, names ...string) string {
	source = operand(source)
	for _, name := range names {
		if selectable(name) {
			source += "." + name
			continue
		}
		quoted, _ := plainJSON(name) // a text has a JSON form
		source += "[" + string(quoted) + "]"
	}
	return source
}

// selectable tells whether a member can be selected by its name. The words that cannot are those of CEL's values and operators.
func selectable(name string) bool {
	switch name {
	case "true", "false", "null", "in":
		return false
	}
	return identifier.MatchString(name)
}

// pathTo finds a field in what a pointer points to; nil = it is not there.
func pathTo(shape, field reflect.Value) []string {
	s := shape.Elem()
	if s.Kind() != reflect.Struct || field.IsNil() {
		return nil
	}
	for i := range s.NumField() {
		f, inner := s.Type().Field(i), s.Field(i).Addr()
		name, flat := jsonName(f)
		switch {
		case name == "" && !flat:
			continue
		case !flat && inner.UnsafePointer() == field.UnsafePointer() && inner.Type() == field.Type():
			return []string{name}
		}
		if path := pathTo(inner, field); path != nil && flat {
			return path
		} else if path != nil {
			return append([]string{name}, path...)
		}
	}
	return nil
}

// jsonName is the name of a field in JSON, empty if it is not there, or flat if its own fields are in its place.
func jsonName(f reflect.StructField) (name string, flat bool) {
	tag := f.Tag.Get("json")
	name, _, _ = strings.Cut(tag, ",")
	switch {
	case tag == "-":
		return "", false
	case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
		return "", true
	case !f.IsExported():
		return "", false
	case name == "":
		return f.Name, false
	}
	return name, false
}

// templates are values with what refers to others as templates.
func templates(v any) any {
	switch v := v.(type) {
	case Reference:
		return v.String()
	case nil, string, bool:
		return v
	case Args:
		return v.templates()
	case map[string]any:
		return Args(v).templates()
	case []any:
		list := make([]any, len(v))
		for i, entry := range v {
			list[i] = templates(entry)
		}
		return list
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return v // Validate complains of it
	}
	return expression.Decode(raw)
}

// Args are arguments of a tool, and what is shown with a question. Values are JSON, of references and of texts that are
// templates, too.
type Args map[string]any

func (a Args) templates() map[string]any {
	if a == nil {
		return nil
	}
	object := make(map[string]any, len(a))
	for name, value := range a {
		object[name] = templates(value)
	}
	return object
}
