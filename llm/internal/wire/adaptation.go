package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// adaptation is one schema on its way into a dialect.
type adaptation struct {
	dialect *Dialect
	left    bool // something was left out

	deepest, properties, values, text, optional, unions int

	place string              // of the definition that is told: # or #/$defs/name
	refs  map[string][]string // where definitions lead, by place
}

func (t *adaptation) exceeds() bool {
	d := t.dialect
	return over(t.deepest, d.Depth) || over(t.properties, d.Properties) || over(t.values, d.Values) ||
		over(t.text, d.Text) || over(t.optional, d.Optional) || over(t.unions, d.Unions)
}

func over(n, most int) bool { return most > 0 && n > most }

// cyclic reports whether a definition leads back to one on the way to it. seen are those that were
// looked at, true while they are on that way.
func (t *adaptation) cyclic(place string, seen map[string]bool) bool {
	if onTheWay, was := seen[place]; was {
		return onTheWay
	}
	seen[place] = true
	for _, to := range t.refs[place] {
		if t.cyclic(to, seen) {
			return true
		}
	}
	seen[place] = false
	return false
}

// schema tells what a schema says; nil = there are no words for it.
func (t *adaptation) schema(s any, depth int) map[string]any {
	in, isObject := s.(map[string]any)
	if !isObject {
		return nil
	}
	t.deepest = max(t.deepest, depth)
	if to, refers := in["$ref"]; refers {
		return t.ref(in, to)
	}
	if !t.typed(in) {
		return nil
	}
	out := make(map[string]any, len(in))
	for keyword, value := range in {
		switch told, ok := t.keyword(keyword, value, depth); {
		case ok:
			out[keyword] = told
		case slices.Contains(soft, keyword):
			t.left = true
		default:
			return nil
		}
	}
	return out
}

// definitions is where $ref may lead, beside # itself.
const definitions = "#/$defs/"

// ref refers to a definition. It stands alone: what describes it is left out.
func (t *adaptation) ref(in map[string]any, value any) map[string]any {
	to, _ := value.(string)
	name, found := strings.CutPrefix(to, definitions)
	if !t.knows("$ref") || to != "#" && (!found || strings.ContainsAny(name, "/~%")) {
		return nil
	}
	for keyword := range in {
		switch {
		case keyword == "$ref":
		case slices.Contains(soft, keyword):
			t.left = true
		default:
			return nil
		}
	}
	t.refs[t.place] = append(t.refs[t.place], to)
	return map[string]any{"$ref": to}
}

func (t *adaptation) knows(keyword string) bool { return slices.Contains(t.dialect.Keywords, keyword) }

// typed reports whether a schema says what it is about, and of an object which properties it has.
func (t *adaptation) typed(in map[string]any) bool {
	types, several := in["type"].([]any)
	if several {
		t.unions++
	}
	if in["type"] == nil && in["anyOf"] == nil {
		return false
	}
	if in["type"] != "object" && !slices.Contains(types, any("object")) {
		return true
	}
	properties, named := in["properties"].(map[string]any)
	required, _ := in["required"].([]any)
	lacking := 0
	for name := range properties {
		if !slices.Contains(required, any(name)) {
			lacking++
		}
	}
	t.optional += lacking
	closed := named && in["additionalProperties"] == false && len(required) == len(properties)-lacking
	return (closed || !t.dialect.Closed) && (lacking == 0 || !t.dialect.Complete)
}

// keyword tells one member of a schema; false = there are no words for it.
func (t *adaptation) keyword(keyword string, value any, depth int) (told any, ok bool) {
	switch keyword {
	case "type", "required":
		return value, true
	case "properties":
		return t.named(value, func(s any, name string) map[string]any {
			t.properties++
			return t.schema(s, depth+1)
		})
	case "$defs":
		within := t.place
		defer func() { t.place = within }()
		told, ok = t.named(value, func(s any, name string) map[string]any {
			t.place = definitions + name
			return t.schema(s, depth+1)
		})
		return told, ok && depth == 0 && t.knows("$ref")
	case "additionalProperties":
		if _, isBool := value.(bool); isBool {
			return value, true
		}
		said := t.schema(value, depth+1)
		return said, said != nil
	case "items":
		said := t.schema(value, depth+1)
		return said, said != nil
	case "anyOf", "oneOf":
		return t.cases(keyword, value, depth)
	case "enum":
		return value, t.listed(value)
	}
	return value, t.plain(keyword, value)
}

// plain reports whether the dialect knows a keyword that has no schema in it, with this value.
func (t *adaptation) plain(keyword string, value any) bool {
	switch keyword {
	case "format":
		format, _ := value.(string)
		return slices.Contains(t.dialect.Formats, format)
	case "minItems":
		n, _ := value.(json.Number)
		least, err := n.Int64()
		return t.knows(keyword) && err == nil && !over(int(least), t.dialect.MinItems)
	case "const":
		return t.knows(keyword) && t.scalar(value)
	}
	return t.knows(keyword)
}

// named tells the schemas that have names.
func (t *adaptation) named(value any, tell func(s any, name string) map[string]any) (told any, ok bool) {
	in, isObject := value.(map[string]any)
	out := make(map[string]any, len(in))
	for name, s := range in {
		t.text += len(name)
		said := tell(s, name)
		if said == nil {
			return nil, false
		}
		out[name] = said
	}
	return out, isObject
}

// cases tells the schemas of which one fits.
func (t *adaptation) cases(keyword string, value any, depth int) (told any, ok bool) {
	in, isList := value.([]any)
	if !isList || !t.knows(keyword) {
		return nil, false
	}
	t.unions++
	out := make([]any, len(in))
	for i, s := range in {
		said := t.schema(s, depth+1)
		if said == nil {
			return nil, false
		}
		out[i] = said
	}
	return out, true
}

func (t *adaptation) listed(value any) bool {
	values, isList := value.([]any)
	t.values += len(values)
	return isList && !slices.ContainsFunc(values, func(v any) bool { return !t.scalar(v) || t.dialect.PlainEnum && !plainValue(v) })
}

func (t *adaptation) scalar(value any) bool {
	switch value := value.(type) {
	case []any, map[string]any:
		return false
	case string:
		t.text += len(value)
	}
	return true
}

func plainValue(v any) bool {
	switch v.(type) {
	case string, json.Number:
		return true
	}
	return false
}

// Say returns the schema as the dialect has it: it fits all that the schema fits, and maybe more.
// It is nil if the dialect has no words for what the schema says.
func (d *Dialect) Say(schema json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber()
	var root map[string]any
	if decoder.Decode(&root) != nil || d.Object && (root["type"] != "object" || root["anyOf"] != nil) {
		return nil
	}
	t := &adaptation{dialect: d, place: "#", refs: map[string][]string{}}
	said := t.schema(root, 0)
	if said == nil || t.exceeds() || d.Flat && t.cyclic("#", map[string]bool{}) {
		return nil
	}
	if !t.left {
		return schema // with its order and its digits
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(said) != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}
