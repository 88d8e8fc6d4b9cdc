package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// adaptation is the translation of one schema into a [Dialect]. It walks the decoded schema, omits
// unsupported keywords of omittableKeywords, fails on other unsupported keywords, and counts what
// the dialect limits. Each method that returns a schema returns nil if the dialect cannot express
// it.
type adaptation struct {
	dialect    *Dialect
	hasOmitted bool // a keyword has been omitted, so the result differs from the input

	// The counters of the limits of the same names in [Dialect].
	deepest, properties, values, text, optional, unions int

	definition string              // JSON pointer of the current definition: "#" or "#/$defs/name"
	refs       map[string][]string // targets of the $refs in each definition, by its pointer
}

// exceedsLimits reports whether a counter exceeds its limit.
func (a *adaptation) exceedsLimits() bool {
	d := a.dialect
	return exceedsLimit(a.deepest, d.Depth) || exceedsLimit(a.properties, d.Properties) || exceedsLimit(a.values, d.Values) ||
		exceedsLimit(a.text, d.Text) || exceedsLimit(a.optional, d.Optional) || exceedsLimit(a.unions, d.Unions)
}

// exceedsLimit reports whether n exceeds limit; a limit of 0 is unlimited.
func exceedsLimit(n, limit int) bool { return limit > 0 && n > limit }

// isCyclic reports whether a chain of $refs from a definition returns to a definition on the chain.
// It is a depth-first search: visited contains the visited definitions, true for those on the
// current chain.
func (a *adaptation) isCyclic(definition string, visited map[string]bool) bool {
	if onChain, ok := visited[definition]; ok {
		return onChain
	}
	visited[definition] = true
	for _, target := range a.refs[definition] {
		if a.isCyclic(target, visited) {
			return true
		}
	}
	visited[definition] = false
	return false
}

// translateSchema translates one schema; nil = the dialect cannot express it. depth is its nesting
// level, 0 for the root. Only a keyword of omittableKeywords can be omitted: without another one,
// the schema could reject values that the original accepts.
func (a *adaptation) translateSchema(s any, depth int) map[string]any {
	in, isObject := s.(map[string]any)
	if !isObject {
		return nil
	}
	a.deepest = max(a.deepest, depth)
	if target, isRef := in["$ref"]; isRef {
		return a.translateRef(in, target)
	}
	if !a.hasSupportedType(in) {
		return nil
	}
	out := make(map[string]any, len(in))
	for keyword, value := range in {
		switch adapted, ok := a.translateKeyword(keyword, value, depth); {
		case ok:
			out[keyword] = adapted
		case slices.Contains(omittableKeywords, keyword):
			a.hasOmitted = true
		default:
			return nil
		}
	}
	return out
}

// definitions is the prefix of the supported $ref targets. The only other supported target is "#",
// the root.
const definitions = "#/$defs/"

// translateRef translates a schema with a $ref. APIs support a $ref only without other keywords, so
// it omits those of omittableKeywords next to it and fails on others. It fails on names with JSON
// pointer escapes as well.
func (a *adaptation) translateRef(in map[string]any, value any) map[string]any {
	target, _ := value.(string)
	name, found := strings.CutPrefix(target, definitions)
	if !a.supports("$ref") || target != "#" && (!found || strings.ContainsAny(name, "/~%")) {
		return nil
	}
	for keyword := range in {
		switch {
		case keyword == "$ref":
		case slices.Contains(omittableKeywords, keyword):
			a.hasOmitted = true
		default:
			return nil
		}
	}
	a.refs[a.definition] = append(a.refs[a.definition], target)
	return map[string]any{"$ref": target}
}

// supports reports whether the dialect supports the keyword.
func (a *adaptation) supports(keyword string) bool {
	return slices.Contains(a.dialect.Keywords, keyword)
}

// hasSupportedType reports whether the schema has a type or anyOf, and whether an object meets
// [Dialect.Closed] and [Dialect.Complete]. It also counts unions and optional properties.
func (a *adaptation) hasSupportedType(in map[string]any) bool {
	types, isUnion := in["type"].([]any)
	if isUnion {
		a.unions++
	}
	if in["type"] == nil && in["anyOf"] == nil {
		return false
	}
	if in["type"] != "object" && !slices.Contains(types, any("object")) {
		return true
	}
	properties, hasProperties := in["properties"].(map[string]any)
	required, _ := in["required"].([]any)
	optional := 0
	for name := range properties {
		if !slices.Contains(required, any(name)) {
			optional++
		}
	}
	a.optional += optional
	// Closed also excludes names in required that are not in properties.
	isClosed := hasProperties && in["additionalProperties"] == false && len(required) == len(properties)-optional
	return (isClosed || !a.dialect.Closed) && (optional == 0 || !a.dialect.Complete)
}

// translateKeyword translates the value of one keyword. ok is false if the dialect does not support
// the keyword with this value.
func (a *adaptation) translateKeyword(keyword string, value any, depth int) (adapted any, ok bool) {
	switch keyword {
	case "type", "required":
		return value, true
	case "properties":
		return a.translateMembers(value, func(s any, name string) map[string]any {
			a.properties++
			return a.translateSchema(s, depth+1)
		})
	case "$defs":
		// Schemas in $defs have names: a $ref inside them must be recorded for the
		// definition.
		outer := a.definition
		defer func() { a.definition = outer }()
		// APIs accept $defs only in the root schema.
		adapted, ok = a.translateMembers(value, func(s any, name string) map[string]any {
			a.definition = definitions + name
			return a.translateSchema(s, depth+1)
		})
		return adapted, ok && depth == 0 && a.supports("$ref")
	case "additionalProperties":
		// The value is a boolean or a schema.
		if _, isBool := value.(bool); isBool {
			return value, true
		}
		adapted := a.translateSchema(value, depth+1)
		return adapted, adapted != nil
	case "items":
		adapted := a.translateSchema(value, depth+1)
		return adapted, adapted != nil
	case "anyOf", "oneOf":
		return a.translateAlternatives(keyword, value, depth)
	case "enum":
		return value, a.supportsEnum(value)
	}
	return value, a.supportsValue(keyword, value)
}

// supportsValue reports whether the dialect supports a keyword that contains no schema, with this
// value.
func (a *adaptation) supportsValue(keyword string, value any) bool {
	switch keyword {
	case "format":
		format, _ := value.(string)
		return slices.Contains(a.dialect.Formats, format)
	case "minItems":
		// Not a number: n is "", and Int64 fails.
		n, _ := value.(json.Number)
		least, err := n.Int64()
		return a.supports(keyword) && err == nil && !exceedsLimit(int(least), a.dialect.MinItems)
	case "const":
		return a.supports(keyword) && a.isScalar(value)
	}
	return a.supports(keyword)
}

// translateMembers translates the schemas of an object such as properties or $defs; translate
// translates one of them. Their names count as text.
func (a *adaptation) translateMembers(value any, translate func(s any, name string) map[string]any) (adapted any, ok bool) {
	in, isObject := value.(map[string]any)
	out := make(map[string]any, len(in))
	for name, s := range in {
		a.text += len(name)
		adapted := translate(s, name)
		if adapted == nil {
			return nil, false
		}
		out[name] = adapted
	}
	return out, isObject
}

// translateAlternatives translates the alternatives of anyOf or oneOf.
func (a *adaptation) translateAlternatives(keyword string, value any, depth int) (adapted any, ok bool) {
	in, isList := value.([]any)
	if !isList || !a.supports(keyword) {
		return nil, false
	}
	a.unions++
	out := make([]any, len(in))
	for i, s := range in {
		adapted := a.translateSchema(s, depth+1)
		if adapted == nil {
			return nil, false
		}
		out[i] = adapted
	}
	return out, true
}

// supportsEnum reports whether the dialect supports the enum. It also counts its values.
func (a *adaptation) supportsEnum(value any) bool {
	values, isList := value.([]any)
	a.values += len(values)
	return isList && !slices.ContainsFunc(values, func(v any) bool { return !a.isScalar(v) || a.dialect.PlainEnum && !isStringOrNumber(v) })
}

// isScalar reports whether value is neither an array nor an object. Strings count as text.
func (a *adaptation) isScalar(value any) bool {
	switch value := value.(type) {
	case []any, map[string]any:
		return false
	case string:
		a.text += len(value)
	}
	return true
}

// isStringOrNumber reports whether v is a string or a number.
func isStringOrNumber(v any) bool {
	switch v.(type) {
	case string, json.Number:
		return true
	}
	return false
}

// Translate translates a schema into the dialect. The result accepts every value that the schema
// accepts, and possibly more, because unsupported keywords of omittableKeywords are omitted. It
// returns nil if the dialect cannot express the schema, or if the schema exceeds a limit or is no
// JSON object.
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
	a := &adaptation{dialect: d, definition: "#", refs: map[string][]string{}}
	adapted := a.translateSchema(root, 0)
	if adapted == nil || a.exceedsLimits() || d.Flat && a.isCyclic("#", map[string]bool{}) {
		return nil
	}
	if !a.hasOmitted {
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
