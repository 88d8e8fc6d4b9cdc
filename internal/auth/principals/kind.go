package principals

// Kind is what a principal may be used for.
type Kind string

// The kinds, which are the names of the lists in the file.
const (
	Approver Kind = "approvers"
	Service  Kind = "services"
)
