// Package tools tests tools in definitions, tools on their own task queues, and the secrets of tools.
package tools

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == spyCommand {
		spy(os.Args[2:])
		return
	}
	if len(os.Args) > 2 && os.Args[1] == lookCommand {
		look(os.Args[2])
		return
	}
	os.Exit(kit.Main(m))
}
