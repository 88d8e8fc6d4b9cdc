// Command pipelines is a worker whose agents are defined in Go and whose tools are Go functions. The
// agents are those of examples/report, examples/desk, examples/triage and examples/order.
// docs/guides/examples.md describes how to run it.
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/worker"
)

func main() {
	definitions, err := all()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pipelines:", err)
		os.Exit(1)
	}
	library, err := libraryTools()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pipelines:", err)
		os.Exit(1)
	}
	worker.Main(worker.Additions{Tools: slices.Concat(library, store(os.Getenv("STORE_URL")).tools()), Agents: definitions})
}

// all returns the definitions of all agents.
func all() ([]*agents.Definition, error) {
	var made []*agents.Definition
	for _, newAgent := range []func() (*agents.Definition, error){report, desk, biller, technician, triage, billing, refunds, technical, order} {
		d, err := newAgent()
		if err != nil {
			return nil, err
		}
		made = append(made, d)
	}
	return made, nil
}
