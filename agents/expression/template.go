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

// Template is a text in which the value of an expression replaces ${…}, and $${ stands for ${.
type Template struct {
	parts []part // texts and expressions in order
}

// part is a literal text or an expression of a template.
type part struct {
	text       string
	expression *Expression // nil = the part is the text
}

// ParseTemplate compiles a template with the standard variables and more.
func ParseTemplate(source string, more ...string) (*Template, error) {
	t := &Template{}
	var text strings.Builder
	for rest := source; rest != ""; {
		before, after, found := strings.Cut(rest, "${")
		if strings.HasSuffix(before, "$") && found {
			text.WriteString(before + "{")
			rest = after
			continue
		}
		text.WriteString(before)
		if !found {
			break
		}
		end := closing(after)
		if end < 0 {
			return nil, errors.New("a ${ has no }")
		}
		e, err := Compile(after[:end], more...)
		if err != nil {
			return nil, fmt.Errorf("${%.40s}: %w", after[:end], err)
		}
		t.parts = append(t.parts, part{text: text.String()}, part{expression: e})
		text.Reset()
		rest = after[end+1:]
	}
	t.parts = append(t.parts, part{text: text.String()})
	return t, nil
}

// closing returns the index of the brace that ends an expression, which may contain braces and
// texts; -1 = there is none.
func closing(source string) int {
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
			n := quoted(source[i:], i > 0 && (source[i-1] == 'r' || source[i-1] == 'R'))
			if n < 0 {
				return -1
			}
			i += n - 1
		}
	}
	return -1
}

// quoted returns the length of the text literal at the beginning of source; -1 = it does not end.
// In a raw literal a backslash is no escape.
func quoted(source string, raw bool) int {
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

// Steps returns the names of the steps whose outputs the template uses.
func (t *Template) Steps() []string {
	var names []string
	for _, p := range t.parts {
		if p.expression != nil {
			names = append(names, p.expression.Steps()...)
		}
	}
	return names
}

// Value returns the value of a template that is a single ${…}, and otherwise the text.
func (t *Template) Value(variables map[string]any) (any, error) {
	if len(t.parts) == 3 && t.parts[0].text == "" && t.parts[2].text == "" {
		return t.parts[1].expression.Value(variables)
	}
	return t.Text(variables)
}

// Text returns the text, with other values than texts as JSON.
func (t *Template) Text(variables map[string]any) (string, error) {
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
		return nil, fmt.Errorf("it has no JSON form: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Each calls f for every text in a JSON value, with its position, such as [0].title.
func Each(value any, f func(at, text string)) { each("", value, f) }

func each(at string, value any, f func(at, text string)) {
	switch v := value.(type) {
	case string:
		f(at, v)
	case []any:
		for i, entry := range v {
			each(fmt.Sprintf("%s[%d]", at, i), entry, f)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			each(at+"."+key, v[key], f)
		}
	}
}

// Fill returns a JSON value in which each text is replaced by the value of its template.
func Fill(value any, variables map[string]any, more ...string) (any, error) {
	switch v := value.(type) {
	case string:
		t, err := ParseTemplate(v, more...)
		if err != nil {
			return nil, err
		}
		return t.Value(variables)
	case []any:
		list := make([]any, len(v))
		for i, entry := range v {
			var err error
			if list[i], err = Fill(entry, variables, more...); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			var err error
			if object[key], err = Fill(v[key], variables, more...); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
		return object, nil
	}
	return value, nil
}
