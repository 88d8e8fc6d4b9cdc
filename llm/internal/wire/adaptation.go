package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// adaptation is the translation of one schema into a [Dialect]. It walks the decoded schema, omits
// unsupported keywords of [soft], fails on other unsupported keywords, and counts what the dialect
// limits. Each method that returns a schema returns nil if the dialect cannot express it.
type adaptation struct {
	dialect *Dialect
	omitted bool // a keyword has been omitted, so the result differs from the input

	// The counters of the limits of the same names in [Dialect].
	deepest, properties, values, text, optional, unions int

	place string              // JSON pointer of the current definition: "#" or "#/$defs/name"
	refs  map[string][]string // targets of the $refs in each definition, by place
}

// exceeds reports whether a counter exceeds its limit.
func (t *adaptation) exceeds() bool {
	d := t.dialect
	return over(t.deepest, d.Depth) || over(t.properties, d.Properties) || over(t.values, d.Values) ||
		over(t.text, d.Text) || over(t.optional, d.Optional) || over(t.unions, d.Unions)
}

// over reports whether n exceeds most; a most of 0 is unlimited.
func over(n, most int) bool { return most > 0 && n > most }

// cyclic reports whether a chain of $refs from place returns to a definition on the chain. It is a
// depth-first search: seen contains the visited definitions, true for those on the current chain.
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

// schema translates one schema; nil = the dialect cannot express it. depth is its nesting level, 0
// for the root. Only a keyword of [soft] can be omitted: without another one, the schema could
// reject values that the original accepts.
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
		switch adapted, ok := t.keyword(keyword, value, depth); {
		case ok:
			out[keyword] = adapted
		case slices.Contains(omittableKeywords, keyword):
			t.omitted = true
		default:
			return nil
		}
	}
	return out
}

// definitions is the prefix of the supported $ref targets. The only other supported target is "#",
// the root.
const definitions = "#/$defs/"

// ref translates a schema with a $ref. APIs support a $ref only without other keywords, so it omits
// those of [soft] next to it and fails on others. It fails on names with JSON pointer escapes as
// well.
func (t *adaptation) ref(in map[string]any, value any) map[string]any {
	to, _ := value.(string)
	name, found := strings.CutPrefix(to, definitions)
	if !t.knows("$ref") || to != "#" && (!found || strings.ContainsAny(name, "/~%")) {
		return nil
	}
	for keyword := range in {
		switch {
		case keyword == "$ref":
		case slices.Contains(omittableKeywords, keyword):
			t.omitted = true
		default:
			return nil
		}
	}
	t.refs[t.place] = append(t.refs[t.place], to)
	return map[string]any{"$ref": to}
}

// knows reports whether the dialect supports the keyword.
func (t *adaptation) knows(keyword string) bool { return slices.Contains(t.dialect.Keywords, keyword) }

// typed reports whether the schema has a type or anyOf, and whether an object meets
// [Dialect.Closed] and [Dialect.Complete]. It also counts unions and optional properties.
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
	// Closed also excludes names in required that are not in properties.
	closed := named && in["additionalProperties"] == false && len(required) == len(properties)-lacking
	return (closed || !t.dialect.Closed) && (lacking == 0 || !t.dialect.Complete)
}

// keyword translates the value of one keyword. ok is false if the dialect does not support the
// keyword with this value.
func (t *adaptation) keyword(keyword string, value any, depth int) (adapted any, ok bool) {
	switch keyword {
	case "type", "required":
		return value, true
	case "properties":
		return t.named(value, func(s any, name string) map[string]any {
			t.properties++
			return t.schema(s, depth+1)
		})
	case "$defs":
		// Schemas in $defs are named places: a $ref inside them must be recorded for the
		// definition.
		within := t.place
		defer func() { t.place = within }()
		// APIs accept $defs only in the root schema.
		adapted, ok = t.named(value, func(s any, name string) map[string]any {
			t.place = definitions + name
			return t.schema(s, depth+1)
		})
		return adapted, ok && depth == 0 && t.knows("$ref")
	case "additionalProperties":
		// The value is a boolean or a schema.
		if _, isBool := value.(bool); isBool {
			return value, true
		}
		adapted := t.schema(value, depth+1)
		return adapted, adapted != nil
	case "items":
		adapted := t.schema(value, depth+1)
		return adapted, adapted != nil
	case "anyOf", "oneOf":
		return t.cases(keyword, value, depth)
	case "enum":
		return value, t.listed(value)
	}
	return value, t.plain(keyword, value)
}

// plain reports whether the dialect supports a keyword that contains no schema, with this value.
func (t *adaptation) plain(keyword string, value any) bool {
	switch keyword {
	case "format":
		format, _ := value.(string)
		return slices.Contains(t.dialect.Formats, format)
	case "minItems":
		// Not a number: n is "", and Int64 fails.
		n, _ := value.(json.Number)
		least, err := n.Int64()
		return t.knows(keyword) && err == nil && !over(int(least), t.dialect.MinItems)
	case "const":
		return t.knows(keyword) && t.scalar(value)
	}
	return t.knows(keyword)
}

// named translates the schemas of an object such as properties or $defs; tell translates one of
// them. Their names count as text.
func (t *adaptation) named(value any, tell func(s any, name string) map[string]any) (adapted any, ok bool) {
	in, isObject := value.(map[string]any)
	out := make(map[string]any, len(in))
	for name, s := range in {
		t.text += len(name)
		adapted := tell(s, name)
		if adapted == nil {
			return nil, false
		}
		out[name] = adapted
	}
	return out, isObject
}

// cases translates the alternatives of anyOf or oneOf.
func (t *adaptation) cases(keyword string, value any, depth int) (adapted any, ok bool) {
	in, isList := value.([]any)
	if !isList || !t.knows(keyword) {
		return nil, false
	}
	t.unions++
	out := make([]any, len(in))
	for i, s := range in {
		adapted := t.schema(s, depth+1)
		if adapted == nil {
			return nil, false
		}
		out[i] = adapted
	}
	return out, true
}

// listed reports whether the dialect supports the enum. It also counts its values.
func (t *adaptation) listed(value any) bool {
	values, isList := value.([]any)
	t.values += len(values)
	return isList && !slices.ContainsFunc(values, func(v any) bool { return !t.scalar(v) || t.dialect.PlainEnum && !plainValue(v) })
}

// scalar reports whether value is neither an array nor an object. Strings count as text.
func (t *adaptation) scalar(value any) bool {
	switch value := value.(type) {
	case []any, map[string]any:
		return false
	case string:
		t.text += len(value)
	}
	return true
}

// plainValue reports whether v is a string or a number.
func plainValue(v any) bool {
	switch v.(type) {
	case string, json.Number:
		return true
	}
	return false
}

// Translate translates a schema into the dialect. The result accepts every value that the schema
// accepts, and possibly more, because unsupported keywords of [soft] are omitted. It returns nil if
// the dialect cannot express the schema, or if the schema exceeds a limit or is no JSON object.
//
// An already expressible schema is returned unchanged, with its member order and number literals.
func (d *Dialect) Translate(schema json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(schema))
	// Numbers keep their literals when the schema is encoded again.
	decoder.UseNumber()
	var root map[string]any
	if decoder.Decode(&root) != nil || d.Object && (root["type"] != "object" || root["anyOf"] != nil) {
		return nil
	}
	t := &adaptation{dialect: d, place: "#", refs: map[string][]string{}}
	adapted := t.schema(root, 0)
	if adapted == nil || t.exceeds() || d.Flat && t.cyclic("#", map[string]bool{}) {
		return nil
	}
	if !t.omitted {
		return schema
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(adapted) != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}
