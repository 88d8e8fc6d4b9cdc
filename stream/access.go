package stream

// Access is who may use a thread.
type Access struct {
	// Owner is the subject of the principal that began the thread; "" = an anonymous caller. nil =
	// the thread's first record is not in the log.
	Owner *string `json:"owner,omitempty"`
	// Shares are in no order.
	Shares []Share `json:"shares,omitempty"`
}

// Share gives some principals of the tenant access to a thread. Exactly one of Subject, Role and
// Everyone is set.
type Share struct {
	Subject string `json:"subject,omitempty"`
	Role    string `json:"role,omitempty"`
	// Everyone shares with all principals of the tenant.
	Everyone bool `json:"everyone,omitempty"`
	// Access is what the principals may do.
	Access AccessLevel `json:"access"`
}

// AccessLevel is what a share allows.
type AccessLevel string

// The levels. Each includes AccessRead, and AccessManage includes all.
const (
	// AccessRead allows to read the thread and its events.
	AccessRead AccessLevel = "read"
	// AccessRun allows to send input, to steer, and to pause and cancel runs.
	AccessRun AccessLevel = "run"
	// AccessDecide allows to decide interrupts for which no approvers are named.
	AccessDecide AccessLevel = "decide"
	// AccessManage allows to share and to delete the thread.
	AccessManage AccessLevel = "manage"
)

// AccessLevels are all levels.
var AccessLevels = []AccessLevel{AccessRead, AccessRun, AccessDecide, AccessManage}
