package reference

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// HTTP returns the reference of an HTTP API as Markdown, from its OpenAPI document. It has a table
// of all routes, a section for each tag with its operations, and one for the schemas that are
// objects.
func HTTP(document []byte) (string, error) {
	root, err := parse(document)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("## Routes\n\n| Method | Path | Section |\n|---|---|---|\n")
	for _, tag := range root.get("tags").items() {
		for path, op := range operations(root, tag.text("name")) {
			summary := op.value.text("summary")
			fmt.Fprintf(&b, "| `%s` | `%s` | [%s](#%s) |\n", strings.ToUpper(op.name), path.name, summary, strings.ReplaceAll(strings.ToLower(summary), " ", "-"))
		}
	}
	b.WriteByte('\n')
	for _, tag := range root.get("tags").items() {
		fmt.Fprintf(&b, "## %s\n\n%s\n", capitalized(tag.text("name")), tag.text("description"))
		for path, op := range operations(root, tag.text("name")) {
			writeOperation(&b, path, op)
		}
		b.WriteByte('\n')
	}
	b.WriteString("## Objects\n")
	for _, s := range root.get("components").get("schemas").members() {
		if isObject(s.value) {
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", s.name, s.value.text("description"))
			writeMembers(&b, s.value)
		}
	}
	return relative(b.String()), nil
}

// operations iterates over the operations of a tag, each with its path.
func operations(root node, tag string) iter.Seq2[member, member] {
	return func(yield func(path, op member) bool) {
		for _, path := range root.get("paths").members() {
			for _, op := range path.value.members() {
				if slices.Contains(op.value.get("tags").values(), "`"+tag+"`") && !yield(path, op) {
					return
				}
			}
		}
	}
}

// writeOperation writes the section of one operation. It leaves out the response "default": all
// errors have the same form, and a page of their own. x-codes has the codes of the operation, and
// x-example a request and its response.
func writeOperation(b *strings.Builder, path, op member) {
	fmt.Fprintf(b, "\n### %s\n\n`%s %s`\n", op.value.text("summary"), strings.ToUpper(op.name), path.name)
	if d := op.value.text("description"); d != "" {
		fmt.Fprintf(b, "\n%s\n", d)
	}
	if parameters := append(path.value.get("parameters").items(), op.value.get("parameters").items()...); len(parameters) > 0 {
		b.WriteString("\n| Parameter | In | Type | Meaning |\n|---|---|---|---|\n")
		for _, p := range parameters {
			p, _ = p.resolve()
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.text("name"), p.text("in"), typeOf(p.get("schema")), p.text("description"))
		}
	}
	body, _ := op.value.get("requestBody").resolve()
	writeBody(b, "Request body", body)
	responses := op.value.get("responses")
	b.WriteString("\n| Status | Response |\n|---|---|\n")
	for _, r := range responses.members() {
		if response, _ := r.value.resolve(); r.name != "default" {
			fmt.Fprintf(b, "| %s | %s%s |\n", r.name, r.value.described(), contentOf(response))
		}
	}
	for _, r := range responses.members() {
		if response, _ := r.value.resolve(); r.name != "default" {
			writeBody(b, "Response "+r.name, response)
		}
	}
	if codes := op.value.get("x-codes").values(); len(codes) > 0 {
		fmt.Fprintf(b, "\n[Errors](errors.md): %s\n", strings.Join(codes, ", "))
	}
	writeExample(b, op.name, op.value.get("x-example"))
}

// writeExample writes the example of an operation: a request with an optional body, and the
// response. A body that is a string is no JSON.
func writeExample(b *strings.Builder, method string, example node) {
	if example.Node == nil {
		return
	}
	fmt.Fprintf(b, "\nExample:\n\n```http\n%s %s HTTP/1.1\n", strings.ToUpper(method), example.text("path"))
	for _, h := range example.get("headers").members() {
		fmt.Fprintf(b, "%s: %s\n", h.name, h.value.Value)
	}
	writeExampleBody(b, example.get("request"))
	status, err := strconv.Atoi(example.text("status"))
	if err != nil {
		status = 0 // shown without a text
	}
	fmt.Fprintf(b, "```\n\n```http\nHTTP/1.1 %s %s\n", example.text("status"), http.StatusText(status))
	writeExampleBody(b, example.get("response"))
	b.WriteString("```\n")
}

// writeExampleBody writes the body of an example after its headers; nothing for a missing one.
func writeExampleBody(b *strings.Builder, body node) {
	if body.Node != nil {
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(body.json()))
	}
}

// writeBody writes the members of a JSON body whose schema has no name. A named schema has a
// section of its own.
func writeBody(b *strings.Builder, title string, body node) {
	schema := body.get("content").get("application/json").get("schema")
	if schema.Node == nil {
		return
	}
	if target, name := schema.resolve(); name != "" && isObject(target) {
		if title == "Request body" {
			fmt.Fprintf(b, "\n%s: %s\n", title, link(name))
		}
		return
	}
	if len(schema.get("properties").members()) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n", title)
	writeMembers(b, schema)
}

// contentOf lists the media types of a response's body, with the names of their schemas.
func contentOf(response node) string {
	var kinds []string
	for _, c := range response.get("content").members() {
		kind := "`" + c.name + "`"
		if _, name := c.value.get("schema").resolve(); name != "" {
			kind += " " + link(name)
		}
		kinds = append(kinds, kind)
	}
	if len(kinds) == 0 {
		return ""
	}
	return " Body: " + strings.Join(kinds, ", ")
}

// capitalized returns s with a capital letter; s must not be empty.
func capitalized(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
