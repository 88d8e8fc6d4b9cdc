package reference

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The texts of a command in the reference are those of its help, so both are written once, in
// package cli and cmd/perdure.

// Commands returns the reference of a command line as Markdown: the flags that commands share, and
// a section for each command.
func Commands(root *cobra.Command) string {
	shared := sharedFlags(root)
	var b strings.Builder
	b.WriteString("## Flags of all commands\n\nCommands that call a server have these flags:\n\n")
	writeFlags(&b, func(visit func(*pflag.Flag)) {
		for _, name := range slices.Sorted(maps.Keys(shared)) {
			visit(shared[name])
		}
	})
	b.WriteString("\n## Commands\n")
	for _, c := range root.Commands() {
		writeCommand(&b, c, shared)
	}
	return b.String()
}

// sharedFlags returns the persistent flags that several commands of the root have, by name.
func sharedFlags(root *cobra.Command) map[string]*pflag.Flag {
	counts, shared := map[string]int{}, map[string]*pflag.Flag{}
	for _, c := range root.Commands() {
		c.PersistentFlags().VisitAll(func(f *pflag.Flag) {
			if counts[f.Name]++; counts[f.Name] > 1 {
				shared[f.Name] = f
			}
		})
	}
	return shared
}

// writeCommand writes the section of a command and of its subcommands: usage, text, example, and
// the flags that it does not share.
func writeCommand(b *strings.Builder, c *cobra.Command, shared map[string]*pflag.Flag) {
	if c.Hidden || c.Name() == "help" {
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n", strings.ReplaceAll(c.CommandPath(), "perdure ", ""))
	text := c.Short + "."
	if c.Long != "" {
		text = c.Long
	}
	if c.Runnable() {
		fmt.Fprintf(b, "`%s`\n\n", c.UseLine())
	}
	fmt.Fprintf(b, "%s\n", text)
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
	_ = c.InheritedFlags() // adds the flags of its parents to c.Flags
	// visitOwn visits the flags that belong into the command's own table.
	visitOwn := func(visit func(*pflag.Flag)) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if shared[f.Name] == nil && !f.Hidden && f.Name != "help" {
				visit(f)
			}
		})
	}
	hasFlags := false
	visitOwn(func(*pflag.Flag) { hasFlags = true })
	if hasFlags {
		b.WriteByte('\n')
		writeFlags(b, visitOwn)
	}
	for _, sub := range c.Commands() {
		writeCommand(b, sub, shared)
	}
}

// values are the placeholders of flag values by pflag type. A type without an entry takes no value.
var values = map[string]string{"string": "TEXT", "stringSlice": "TEXT,…", "stringArray": "TEXT", "int": "N", "duration": "DURATION"}

// writeFlags writes the table of the flags that visit visits.
func writeFlags(b *strings.Builder, visit func(func(*pflag.Flag))) {
	b.WriteString("| Flag | Meaning |\n|---|---|\n")
	visit(func(f *pflag.Flag) {
		name := "`--" + f.Name
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		if value := values[f.Value.Type()]; value != "" {
			name += " " + value
		}
		meaning := f.Usage
		if zero := f.DefValue == "" || f.DefValue == "false" || f.DefValue == "[]" || f.DefValue == "0"; !zero {
			meaning += " (default `" + f.DefValue + "`)"
		}
		fmt.Fprintf(b, "| %s` | %s |\n", name, meaning)
	})
}
