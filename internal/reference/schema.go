package reference

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// This file describes JSON Schemas, on their own and in the OpenAPI document. It supports the
// keywords that Perdure's schemas use, and no others.

// Definition returns the reference of the documents that a JSON Schema describes, as Markdown: a
// table of the members of the document, and one for each object in $defs.
func Definition(schema []byte) (string, error) {
	root, err := parse(schema)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", root.text("title"), root.text("description"))
	writeMembers(&b, root)
	for _, def := range root.get("$defs").members() {
		if isObject(def.value) {
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", def.name, def.value.text("description"))
			writeMembers(&b, def.value, requiredByUsers(root, def.name)...)
		}
	}
	return relative(b.String()), nil
}

// requiredByUsers returns the members, as code, that definitions which refer to the named one
// require in addition.
func requiredByUsers(root node, name string) []string {
	var list []string
	for _, def := range root.get("$defs").members() {
		if def.value.text("$ref") == "#/$defs/"+name {
			list = append(list, def.value.get("required").values()...)
		}
	}
	return list
}

// isObject reports whether a schema lists the members of an object.
func isObject(schema node) bool { return len(schema.get("properties").members()) > 0 }

// writeMembers writes the table of an object's members. An inline object (without a name in $defs)
// has its members in the same table, with their paths. required are members, as code, that are
// required in addition to those of the schema.
func writeMembers(b *strings.Builder, schema node, required ...string) {
	b.WriteString("| Member | Type | Meaning |\n|---|---|---|\n")
	writeRows(b, "", schema, required...)
}

// writeRows writes the rows of a schema's members. prefix is the path of the schema with a dot at
// its end.
func writeRows(b *strings.Builder, prefix string, schema node, required ...string) {
	required = append(required, schema.get("required").values()...)
	for _, m := range schema.get("properties").members() {
		if m.value.Value == "false" {
			continue // the schema forbids the member here
		}
		optional := "?"
		if slices.Contains(required, "`"+m.name+"`") {
			optional = ""
		}
		fmt.Fprintf(b, "| `%s%s`%s | %s | %s |\n", prefix, m.name, optional, typeOf(m.value), m.value.described())
		// Inline alternatives and items have no section of their own, so their members are rows of
		// this table.
		for _, alternative := range append(m.value.get("oneOf").items(), m.value) {
			if alternative.text("$ref") == "" {
				writeRows(b, prefix+m.name+".", alternative)
			}
			if items := alternative.get("items"); items.text("$ref") == "" {
				writeRows(b, prefix+m.name+"[].", items)
			}
		}
	}
}

// typeOf describes the values that a schema allows: a link to a named object, or the type with its
// format, bounds and default.
func typeOf(schema node) string {
	target, name := schema.resolve()
	switch {
	case isObject(target) && (strings.HasPrefix(schema.text("$ref"), "#/$defs/") || strings.HasPrefix(schema.text("$ref"), "#/components/")):
		return link(name)
	// A reference to a part of another schema, which has no section of its own.
	case isObject(target) && name != "":
		kind := "as `" + name + "`"
		for _, m := range schema.get("properties").members() {
			if m.value.Value == "false" {
				kind += ", without `" + m.name + "`"
			}
		}
		return kind
	}
	// A keyword next to a $ref overrides that of the target.
	keyword := func(name string) string { return cmp.Or(schema.text(name), target.text(name)) }
	kind := kindOf(target)
	if format := keyword("format"); format != "" {
		kind += " (" + format + ")"
	}
	if pattern := keyword("pattern"); pattern != "" && !strings.Contains(pattern, "|") { // a bar would end the cell
		kind += ", `" + pattern + "`"
	}
	kind += bounds(keyword("minimum"), keyword("maximum"))
	if entries := bounds(keyword("minItems"), keyword("maxItems")); entries != "" {
		kind += entries + " entries"
	}
	if above, below := keyword("exclusiveMinimum"), keyword("exclusiveMaximum"); above != "" && below != "" {
		kind += fmt.Sprintf(", above %s and below %s", above, below)
	}
	if byDefault := keyword("default"); byDefault != "" {
		kind += ", default `" + byDefault + "`"
	}
	return kind
}

// bounds describes an inclusive range; "" = there is no bound.
func bounds(low, high string) string {
	switch {
	case low != "" && high != "":
		return ", " + low + " to " + high
	case low != "":
		return ", at least " + low
	case high != "":
		return ", at most " + high
	}
	return ""
}

// kindOf returns the type of values without their bounds: the types, constants, enumerations and
// alternatives of the schema.
func kindOf(schema node) string {
	kinds := schema.get("type").values()
	if kind := schema.text("type"); kind != "" {
		kinds = []string{kind}
	}
	for _, alternative := range schema.get("oneOf").items() {
		if kind := typeOf(alternative); !slices.Contains(kinds, kind) && (len(kinds) == 0 || schema.text("type") == "") {
			kinds = append(kinds, kind)
		}
	}
	// Names of types have code quotes at this point if they come from a list.
	for i, kind := range kinds {
		if kind = strings.Trim(kind, "`"); kind == "array" {
			kinds[i] = "array of " + typeOf(schema.get("items"))
		} else if schema.get("type").Node != nil {
			kinds[i] = kind
		}
	}
	switch {
	case len(schema.get("enum").items()) > 0:
		return strings.Join(schema.get("enum").values(), ", ")
	case schema.text("const") != "":
		return "`" + schema.text("const") + "`"
	case len(kinds) == 0:
		return "any"
	}
	or := " or "
	if slices.ContainsFunc(kinds, func(kind string) bool { return strings.Contains(kind, ", ") }) {
		or = ", or "
	}
	return strings.Join(kinds, or)
}

// link returns a Markdown link to the section of an object.
func link(name string) string { return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name)) }
