package expression

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Template is a compiled text with expressions in ${…}; $${ stands for a literal ${. It is never
// changed, so it is safe for concurrent use.
type Template struct {
	parts []part // texts and expressions alternate; the first and the last part are texts
}

// part is a literal text or an expression of a template.
type part struct {
	text       string
	expression *Expression // nil = the part is the text
}

// ParseTemplate compiles a template. Its expressions have the standard variables and those of more.
func ParseTemplate(source string, more ...string) (*Template, error) {
	return StandardScope(more...).ParseTemplate(source)
}

// ParseTemplate compiles a template whose expressions have the variables of the scope.
func (s Scope) ParseTemplate(source string) (*Template, error) {
	t := &Template{}
	var text strings.Builder
	for remaining := source; remaining != ""; {
		before, after, found := strings.Cut(remaining, "${")
		// $${ is the escape: one dollar sign and the brace are literal text.
		if strings.HasSuffix(before, "$") && found {
			text.WriteString(before + "{")
			remaining = after
			continue
		}
		text.WriteString(before)
		if !found {
			break
		}
		end := expressionEnd(after)
		if end < 0 {
			return nil, errors.New("a ${ has no }")
		}
		e, err := s.Compile(after[:end])
		if err != nil {
			return nil, fmt.Errorf("${%.40s}: %w", after[:end], err)
		}
		t.parts = append(t.parts, part{text: text.String()}, part{expression: e})
		text.Reset()
		remaining = after[end+1:]
	}
	t.parts = append(t.parts, part{text: text.String()})
	return t, nil
}

// expressionEnd returns the index of the brace that ends an expression, after nested braces and
// string literals; -1 = there is none.
func expressionEnd(source string) int {
	depth := 0
	for i := 0; i < len(source); i++ {
		switch c := source[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case '"', '\'':
			n := literalLength(source[i:], i > 0 && (source[i-1] == 'r' || source[i-1] == 'R'))
			if n < 0 {
				return -1
			}
			i += n - 1
		}
	}
	return -1
}

// literalLength returns the length of the CEL string literal at the beginning of source; -1 = it
// does not end. In a raw literal a backslash is no escape.
func literalLength(source string, raw bool) int {
	quote := source[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(source, triple) {
		quote = triple
	}
	for i := len(quote); i < len(source); i++ {
		switch {
		case source[i] == '\\' && !raw:
			i++
		case strings.HasPrefix(source[i:], quote):
			return i + len(quote)
		}
	}
	return -1
}

// Steps returns the names of the steps whose outputs the template uses. A name may occur more than
// once.
func (t *Template) Steps() []string {
	var names []string
	for _, p := range t.parts {
		if p.expression != nil {
			names = append(names, p.expression.Steps()...)
		}
	}
	return names
}

// Value evaluates the template. If it is a single ${…}, the result is the value of the expression,
// of any type; otherwise it is the text.
func (t *Template) Value(variables map[string]any) (any, error) {
	// A template of a single expression has empty texts before and after it.
	if len(t.parts) == 3 && t.parts[0].text == "" && t.parts[2].text == "" {
		return t.parts[1].expression.Value(variables)
	}
	return t.Text(variables)
}

// Text evaluates the template to a text. Values that are not strings become JSON.
func (t *Template) Text(variables map[string]any) (string, error) {
	return t.join(variables, textOf)
}

// ID evaluates the template to the text of an ID. No value may be null, because all things without a
// value would have the same ID.
func (t *Template) ID(variables map[string]any) (string, error) {
	return t.join(variables, func(value any) (string, error) {
		if value == nil {
			return "", errors.New("a part of the ID is null")
		}
		return textOf(value)
	})
}

// join evaluates the template to its texts and those of its values.
func (t *Template) join(variables map[string]any, textOf func(value any) (string, error)) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.expression == nil {
			b.WriteString(p.text)
			continue
		}
		value, err := p.expression.Value(variables)
		if err != nil {
			return "", err
		}
		text, err := textOf(value)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// Outline returns the template with a text in place of each expression.
func (t *Template) Outline(placeholder string) string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.expression != nil {
			b.WriteString(placeholder)
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// escapePointer escapes a name in a JSON pointer (RFC 6901).
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1").Replace

// Pointer evaluates the template to a JSON pointer. Values must be strings or whole numbers, and
// are escaped: a value cannot add a segment.
func (t *Template) Pointer(variables map[string]any) (string, error) {
	return t.join(variables, func(value any) (string, error) {
		switch value.(type) {
		case string, int64, uint64:
		default:
			return "", fmt.Errorf("a part of the path is %s, not a text or a whole number", describe(value))
		}
		text, err := textOf(value)
		return escapePointer(text), err
	})
}

// textOf returns a value as text.
func textOf(value any) (string, error) {
	if text, ok := value.(string); ok {
		return text, nil
	}
	raw, err := Encode(value)
	return string(raw), err
}

// Encode encodes a value as JSON, without escaping <, > and &.
func Encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("the value has no JSON form: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Each calls f for every string in a JSON value, with its position, such as [0].title. Members of
// objects are visited in the order of their names.
func Each(value any, f func(at, text string)) { each("", value, f) }

// each is Each at a position.
func each(position string, value any, f func(position, text string)) {
	switch v := value.(type) {
	case string:
		f(position, v)
	case []any:
		for i, entry := range v {
			each(fmt.Sprintf("%s[%d]", position, i), entry, f)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			each(position+"."+key, v[key], f)
		}
	}
}

// Fill returns a JSON value in which the value of its template replaces each string. more are the
// variables beyond the standard ones.
func Fill(value any, variables map[string]any, more ...string) (any, error) {
	return StandardScope(more...).Fill(value, variables)
}

// Fill returns a JSON value in which the value of its template replaces each string.
func (s Scope) Fill(value any, variables map[string]any) (any, error) {
	switch v := value.(type) {
	case string:
		t, err := s.ParseTemplate(v)
		if err != nil {
			return nil, err
		}
		return t.Value(variables)
	case []any:
		list := make([]any, len(v))
		for i, entry := range v {
			var err error
			if list[i], err = s.Fill(entry, variables); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			var err error
			if object[key], err = s.Fill(v[key], variables); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
		return object, nil
	}
	return value, nil
}
