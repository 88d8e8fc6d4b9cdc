package main

import (
	"flag"
	"testing"

	"github.com/perdure/perdure/internal/reference"
)

var update = flag.Bool("update", false, "rewrite docs/reference/cli.md instead of comparing it")

func TestCommandReference(t *testing.T) {
	t.Parallel()
	reference.Check(t, "../../docs/reference/cli.md", "commands", reference.Commands(command(nil)), *update)
}
