package catalog

import (
	"time"

	"github.com/perdure/perdure/internal/auth"
)

// draft is the record of a draft: a definition that callers may run, and that was never published.
// The definition has a key of its own, so that a watch of all records does not receive definitions.
type draft struct {
	Tenant string          `json:"tenant,omitempty"` // to which the agent belongs; "" = to the platform
	By     *auth.Principal `json:"by,omitempty"`     // who has written it; nil = an anonymous caller
	At     time.Time       `json:"at"`
	Bytes  int64           `json:"bytes"`
	Used   bool            `json:"used,omitempty"` // a run has used it
}
