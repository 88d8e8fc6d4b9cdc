package decisions

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/internal/approvals/inbox"
)

// Schemas knows the schemas of tools. It is safe for concurrent use.
type Schemas interface {
	// Check returns what is wrong with the arguments of a call, and where; no reason = nothing is
	// known to be wrong.
	Check(ctx context.Context, tool string, arguments json.RawMessage) (pointer, reason string, err error)
	// Fits returns what is wrong with the answer to a tool's question, by its schema.
	Fits(schema, answer json.RawMessage) (pointer, reason string, err error)
}

// Service carries out decisions about interrupts, and takes results of client tool calls. It is
// safe for concurrent use.
type Service struct {
	find     *lookup.Finder
	commands *commands.Sender
	catalog  *catalog.Catalog
	schemas  Schemas      // nil = no schema is known
	index    *inbox.Index // nil = there is no inbox
}

// NewService returns a Service. schemas and index may be nil.
func NewService(find *lookup.Finder, sender *commands.Sender, definitions *catalog.Catalog, schemas Schemas, index *inbox.Index) *Service {
	return &Service{find, sender, definitions, schemas, index}
}
