package activities

import (
	"time"

	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/internal/secrets"
)

// RemoteAgents calls agents on other servers. It is immutable and safe for concurrent use.
type RemoteAgents struct {
	Client *remote.Client
	// Secret returns the value of a secret of the worker; "" = there is none.
	Secret secrets.Lookup
	// Silence is how long an agent may send nothing; 0 = the default of remote.Limits.
	Silence time.Duration
}
