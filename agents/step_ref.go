package agents

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/perdure/perdure/agents/expression"
)

// Ref is a reference to a value of type T that exists only when the step runs: the output of a
// step, a member of it, or an item. It consists of the CEL expression of the value.
type Ref[T any] struct {
	// Out points to a zero T. Pointers to its fields are arguments of [Field].
	Out *T

	source string
}

// Reference is a [Ref] of any type.
type Reference interface {
	// Expr returns the expression, for use in other expressions.
	Expr() string
	// String returns the template of the value, such as ${steps.plan}. A dollar sign directly
	// before it would escape it.
	String() string
	shape() any
}

// Value is a [Ref] of one type, or contains one: a [StepOf] or an [Item].
type Value[T any] interface {
	Reference
	ref() Ref[T]
}

// Expr returns a reference to the value of a CEL expression. [New] checks the expression and its
// variables; nothing checks that the value is a T.
func Expr[T any](source string) Ref[T] { return Ref[T]{new(T), source} }

// Expr returns the expression.
func (r Ref[T]) Expr() string { return r.source }

// String returns the template.
func (r Ref[T]) String() string { return "${" + r.source + "}" }

// MarshalText encodes the reference as a template.
func (r Ref[T]) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r Ref[T]) shape() any  { return r.Out }
func (r Ref[T]) ref() Ref[T] { return r }

// Field returns a reference to a field of a struct, by a pointer into its Out:
//
//	agents.Field(plan, &plan.Out.Queries)
//
// The reference has the field's json name. The field may be one of a nested struct. If the pointer
// is not into Out, [New] fails.
func Field[F any](reference Reference, field *F) Ref[F] {
	names := pathTo(reflect.ValueOf(reference.shape()), reflect.ValueOf(field))
	if names == nil {
		return Ref[F]{field, "no_such_field_of_" + notInNames.ReplaceAllString(reference.Expr(), "_")}
	}
	return Ref[F]{field, memberOf(reference.Expr(), names...)}
}

// Member returns a reference to a member of a value without a Go type, or to a nested one:
// Member[string](order, "address", "city").
func Member[T any](reference Reference, names ...string) Ref[T] {
	return Expr[T](memberOf(reference.Expr(), names...))
}

// Equal returns a reference to the comparison of a value with a constant.
func Equal[T ~string | ~bool | ~int | ~int64 | ~float64](value Value[T], to T) Ref[bool] {
	literal, err := plainJSON(to)
	if err != nil { // not a finite number
		literal = fmt.Append(nil, to)
	}
	return Expr[bool](operand(value.Expr()) + " == " + string(literal))
}

var (
	// simple matches an operand that needs no parentheses: identifiers, members and indexes.
	simple     = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*(\.[a-zA-Z_][a-zA-Z0-9_]*|\["[^"\\]*"\]|\[\d+\])*$`)
	identifier = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	notInNames = regexp.MustCompile(`[^a-zA-Z0-9]+`)
)

// operand returns an expression for use in a larger one, in parentheses if necessary.
func operand(source string) string {
	if simple.MatchString(source) {
		return source
	}
	return "(" + source + ")"
}

// memberOf returns the expression of a member, or of a nested one.
func memberOf(source string, names ...string) string {
	source = operand(source)
	for _, name := range names {
		if selectable(name) {
			source += "." + name
			continue
		}
		quoted, _ := plainJSON(name) // a text can always be encoded
		source += "[" + string(quoted) + "]"
	}
	return source
}

// selectable reports whether CEL can select a member with this name by a dot: an identifier that is
// neither a literal nor an operator.
func selectable(name string) bool {
	switch name {
	case "true", "false", "null", "in":
		return false
	}
	return identifier.MatchString(name)
}

// pathTo returns the path of json names to a field in the struct that shape points to; nil = the
// struct does not have the field. It compares addresses, and types, because a struct and its first
// field have the same address.
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

// jsonName returns the name of a field in JSON; "" = JSON does not have the field. flat means that
// the fields of an embedded struct take its place.
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

// templates returns a value in which references are replaced by their templates.
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
		return v // Validate reports the error
	}
	return expression.Decode(raw)
}

// Args are arguments of a tool, or of an approval. Values are JSON; they may be, or contain,
// references and templates.
type Args map[string]any

// templates returns the arguments with references replaced by their templates.
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
