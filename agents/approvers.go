package agents

import (
	"slices"
	"strings"
	"time"
)

// Escalation says that more people may decide when nobody has for some time.
type Escalation struct {
	// After counts from when the approval opened.
	After time.Duration
	// To are approvers, as in [Approval.Approvers].
	To []string
}

const rolePrefix = "role:"

// ApproversAt are those who may decide once so many escalations have come; none = whoever may use the thread.
func (a Approval) ApproversAt(escalations int) []string {
	if len(a.Approvers) == 0 {
		return nil
	}
	approvers := slices.Clone(a.Approvers)
	for _, e := range a.Escalate[:min(escalations, len(a.Escalate))] {
		approvers = append(approvers, e.To...)
	}
	return approvers
}

// MayDecide tells whether a person is one of the approvers. No approvers are everybody.
func MayDecide(approvers []string, subject string, roles []string) bool {
	return len(approvers) == 0 || slices.ContainsFunc(approvers, func(a string) bool {
		if role, ok := strings.CutPrefix(a, rolePrefix); ok {
			return slices.Contains(roles, role)
		}
		return subject != "" && a == subject
	})
}
