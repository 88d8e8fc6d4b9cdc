package catalog

import (
	"time"

	"github.com/perdure/perdure/internal/auth"
)

// Source is where a publication comes from.
type Source string

// Values of Source.
const (
	SourceDirectory Source = "directory" // the folder of the API process
	SourcePut       Source = "put"       // a client of the API
)

// Publication records that a revision became the current one of its agent.
type Publication struct {
	Tenant   string // to which the agent belongs; "" = to the platform
	Number   uint64 // from 1, without gaps
	Revision string
	Source   Source
	// By is the caller that has published the revision over HTTP; nil = none, or an anonymous one.
	By *auth.Principal
	At time.Time
	// Note is what the publisher says about the change; "" = nothing.
	Note string
	// Bytes is the size of the definition as the bucket stores it.
	Bytes int64
}

// publication is the stored form of a Publication. The key has the number, and the bucket the time.
// The key has only a token of the tenant.
type publication struct {
	Tenant   string          `json:"tenant,omitempty"`
	Revision string          `json:"revision"`
	Source   Source          `json:"source"`
	By       *auth.Principal `json:"by,omitempty"`
	Bytes    int64           `json:"bytes"`
	Note     string          `json:"note,omitempty"`
}
