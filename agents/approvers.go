package agents

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const rolePrefix = "role:"

const (
	maxApprovers   = 32
	maxApprover    = 256 // bytes
	maxQuorum      = 8
	maxEscalations = 4
	minRemind      = time.Second
)

// Escalations returns the times at which an approval escalates, counted from its opening. With
// OnExpiry escalate, Expires is the last of them, even if it adds no approvers.
func (a Approval) Escalations() []time.Duration {
	var times []time.Duration
	for _, e := range a.Escalate {
		times = append(times, e.After)
	}
	if a.OnExpiry == OnExpiryEscalate && !slices.Contains(times, a.Expires) {
		times = append(times, a.Expires)
	}
	return times
}

// Deadline returns when an approval expires, counted from its opening (0 = never), and what happens
// to the call then: reject, skip or fail; "" = reject.
func (a Approval) Deadline() (time.Duration, string) {
	if a.OnExpiry == OnExpiryEscalate {
		return 2 * a.Expires, OnExpiryReject
	}
	return a.Expires, a.OnExpiry
}

// ApproversAt returns the approvers after a number of escalations; nil = the rule
// names none.
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

// ApproversAfter returns the approvers of an approval that has been open for some time.
func (a Approval) ApproversAfter(open time.Duration) []string {
	count := 0
	for _, after := range a.Escalations() {
		if after <= open {
			count++
		}
	}
	return a.ApproversAt(count)
}

// MayDecide reports whether a caller is one of the approvers, by subject or role. Without approvers
// everyone is. An empty subject never matches.
func MayDecide(approvers []string, subject string, roles []string) bool {
	return len(approvers) == 0 || slices.ContainsFunc(approvers, func(a string) bool {
		if role, ok := strings.CutPrefix(a, rolePrefix); ok {
			return slices.Contains(roles, role)
		}
		return subject != "" && a == subject
	})
}

// SameDeciders reports whether an approval by this rule also satisfies the other rule: both have
// the same approvers, quorum, escalations and NotByRequester.
func (a Approval) SameDeciders(other Approval) bool {
	sameEscalation := func(a, b Escalation) bool { return a.After == b.After && slices.Equal(a.To, b.To) }
	return slices.Equal(a.Approvers, other.Approvers) && max(a.Quorum, 1) == max(other.Quorum, 1) &&
		a.NotByRequester == other.NotByRequester && slices.EqualFunc(a.Escalate, other.Escalate, sameEscalation)
}

// escalations reads a list of escalations.
func (r *reader) escalations(key string, into *[]Escalation) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.SequenceNode {
			return "must be a list, not " + describe(node)
		}
		for i, entry := range node.Content {
			entryKey := fmt.Sprintf("%s[%d]", key, i)
			entry = resolve(entry)
			var e Escalation
			if entry.Kind == yaml.MappingNode {
				r.mapping(entryKey+".", entry, []field{{"after", duration(&e.After)}, {"to", r.texts(entryKey+".to", &e.To)}})
			} else {
				r.report(key, entry, entryKey+" must have keys, not be "+describe(entry))
			}
			*into = append(*into, e)
		}
		return ""
	}
}

// approverMistakes returns the mistakes about approvers, quorum, reminders and escalations.
func (a Approval) approverMistakes(key string) []mistake {
	found := checkApproverNames(key+".approvers", a.Approvers)
	if a.Quorum < 0 || a.Quorum > maxQuorum {
		found = append(found, newMistake(key+".quorum", "must be 1 to %d, not %d", maxQuorum, a.Quorum))
	}
	if maxVotes, bounded := a.maxVotes(); bounded && a.Quorum > maxVotes {
		found = append(found, newMistake(key+".quorum", "is %d, but the number of approvers is %d", a.Quorum, maxVotes))
	}
	if a.Remind < 0 || a.Remind > 0 && a.Remind < minRemind {
		found = append(found, newMistake(key+".remind", "must be at least %s", minRemind))
	}
	return append(found, a.escalationMistakes(key)...)
}

// maxVotes returns how many approvers can approve after all escalations. bounded is false if an
// approver is a role, or if everyone may approve.
func (a Approval) maxVotes() (n int, bounded bool) {
	all := a.ApproversAt(len(a.Escalate))
	slices.Sort(all)
	isRole := func(name string) bool { return strings.HasPrefix(name, rolePrefix) }
	return len(slices.Compact(all)), len(all) > 0 && !slices.ContainsFunc(all, isRole)
}

// escalationMistakes returns the mistakes of the escalations. Their times must increase and be
// before the expiry; with OnExpiry escalate the last may be equal to it.
func (a Approval) escalationMistakes(key string) []mistake {
	var found []mistake
	if n := len(a.Escalate); n > maxEscalations {
		found = append(found, newMistake(key+".escalate", "must be at most %d, not %d", maxEscalations, n))
	}
	if len(a.Escalate) > 0 && len(a.Approvers) == 0 {
		found = append(found, newMistake(key+".escalate", "needs approvers: an escalation adds others to them"))
	}
	if a.OnExpiry == OnExpiryEscalate && len(a.Escalate) == 0 {
		found = append(found, newMistake(key+".onExpiry", "needs escalate"))
	}
	last := time.Duration(0)
	for i, e := range a.Escalate {
		entryKey := fmt.Sprintf("%s.escalate[%d]", key, i)
		isLate := e.After > a.Expires || e.After == a.Expires && a.OnExpiry != OnExpiryEscalate
		switch {
		case e.After == 0:
			found = append(found, newMistake(entryKey+".after", "must be a duration greater than zero"))
		case e.After <= last:
			found = append(found, newMistake(entryKey+".after", "must be later than that of the previous escalation"))
		case a.Expires > 0 && isLate:
			found = append(found, newMistake(entryKey+".after", "must be before the approval expires"))
		}
		last = e.After
		if len(e.To) == 0 {
			found = append(found, newMistake(entryKey+".to", "must name approvers"))
		}
		found = append(found, checkApproverNames(entryKey+".to", e.To)...)
	}
	return found
}

// checkApproverNames returns the mistakes in a list of approvers.
func checkApproverNames(key string, approvers []string) []mistake {
	if n := len(approvers); n > maxApprovers {
		return []mistake{newMistake(key, "must be at most %d, not %d", maxApprovers, n)}
	}
	var found []mistake
	for i, a := range approvers {
		name := strings.TrimPrefix(a, rolePrefix)
		switch {
		case name == "" || len(a) > maxApprover || !utf8.ValidString(a) || strings.ContainsFunc(a, unicode.IsControl):
			found = append(found, mistake{key, i, fmt.Sprintf("%s: %.80q must be a subject, or role: and a role, of at most %d bytes", key, a, maxApprover)})
		case slices.Contains(approvers[:i], a):
			found = append(found, mistake{key, i, fmt.Sprintf("%s: %.80q appears twice", key, a)})
		}
	}
	return found
}
