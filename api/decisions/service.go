package decisions

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
)

// Schemas validates arguments and answers against the schemas of tools that workers have announced.
// It is safe for concurrent use.
type Schemas interface {
	// Check validates the arguments of a call against the tool's schema. pointer is the JSON
	// pointer to the wrong member, reason what is wrong with it. An empty reason means that the
	// arguments are valid, or that the schema is unknown.
	Check(ctx context.Context, tool string, arguments json.RawMessage) (pointer, reason string, err error)
	// Fits validates the answer to a tool's question against the schema of the question, with the
	// same results as Check.
	Fits(schema, answer json.RawMessage) (pointer, reason string, err error)
}

// Service makes decisions about interrupts, and takes results of client tool calls. It has no state
// of its own: the log and the workflows have it. It is safe for concurrent use, and needs no Close.
type Service struct {
	finder   *lookup.Finder
	commands *commands.Sender
	catalog  *catalog.Catalog
	schemas  Schemas      // nil = no schema is known: the worker validates
	index    *inbox.Index // nil = there is no inbox
	access   Access
}

// Access decides whether the caller of a request may do something with a thread
// (api/access.Guard). It is safe for concurrent use.
type Access interface {
	Check(ctx context.Context, thread stream.Thread, action policy.Action) error
	CheckInterrupt(ctx context.Context, thread stream.Thread, action policy.Action, isApprover bool) error
}

// NewService returns a Service. schemas and index may be nil.
func NewService(find *lookup.Finder, sender *commands.Sender, definitions *catalog.Catalog, schemas Schemas, index *inbox.Index, access Access) *Service {
	return &Service{find, sender, definitions, schemas, index, access}
}
