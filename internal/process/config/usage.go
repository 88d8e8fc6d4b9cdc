package config

import (
	"fmt"
	"io"
	"strings"
)

// writeUsage writes the text of --help: the flags with their variables, then the variables without
// a flag.
func writeUsage(out io.Writer, p Process) {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s [flags]\n\nEvery flag has an environment variable; the flag wins.\n\n", p)
	var withoutFlag []Variable
	for _, v := range Variables(p) {
		if v.Flag() == "" {
			withoutFlag = append(withoutFlag, v)
			continue
		}
		fmt.Fprintf(&b, "  --%s, %s\n", v.Flag(), v.Name)
		writeMeaning(&b, v)
	}
	b.WriteString("  --version\n        show the version of this program, and exit\n")
	b.WriteString("\nFrom the environment only. A secret can be in a file, such as that of OPENAI_API_KEY_FILE:\n\n")
	for _, v := range withoutFlag {
		fmt.Fprintf(&b, "  %s\n", v.Name)
		writeMeaning(&b, v)
	}
	_, _ = io.WriteString(out, b.String()) // an error could not be shown either
}

// writeMeaning writes the meaning and the default of a variable.
func writeMeaning(b *strings.Builder, v Variable) {
	fmt.Fprintf(b, "        %s", v.Meaning)
	if v.Default != "" {
		fmt.Fprintf(b, " (default %s)", v.Default)
	}
	b.WriteByte('\n')
}

// Markdown returns the tables of all variables for docs/reference/configuration.md, one for each
// group.
func Markdown() string {
	var b strings.Builder
	for i, g := range groups {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "### %s\n\n| Variable | Flag | Default | Read by | Meaning |\n|---|---|---|---|---|\n", g.title)
		for _, v := range g.variables {
			var by []string
			for _, p := range v.For {
				by = append(by, string(p))
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", v.Name, code("--", v.Flag()), code("", v.Default), strings.Join(by, ", "), v.Meaning)
		}
	}
	return b.String()
}

// code formats a text as Markdown code, with a prefix; "" stays "".
func code(prefix, s string) string {
	if s == "" {
		return ""
	}
	return "`" + prefix + s + "`"
}
