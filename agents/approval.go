package agents

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Approval is a rule: approvers decide about calls of some tools before the calls are made. The
// first rule of an agent that applies to a call counts.
type Approval struct {
	// Tools are names of tools, as models call them, or patterns with * as a wildcard. At least
	// one, at most 64.
	Tools []string

	// When is a condition in CEL over args, tool, agent, state, input and caller. It is evaluated
	// for each caller whose content the model has received. The rule applies if the condition is
	// true for one, and also if an evaluation fails, so that no call escapes approval.
	// "" = the rule always applies. At most 4 KiB.
	When string

	// Approvers may decide: subjects, or role:name for all with that role. Empty = callers that may
	// decide in the thread, or with NotByRequester every caller of the tenant.
	Approvers []string

	// Quorum is the number of approvers who must approve, 1 to 8. 0 = 1.
	Quorum int

	// NotByRequester refuses decisions of every caller whose content the model has received: the
	// requesters of the thread's runs, and callers that steered one, answered a question or sent the
	// result of a client tool call.
	NotByRequester bool

	// Remind is the interval of reminders. 0 = none.
	Remind time.Duration

	// Escalate adds approvers after some time without a decision. At most 4, sorted by their times.
	Escalate []Escalation

	// Expires is the time for the decision. 0 = unlimited.
	Expires time.Duration

	// OnExpiry is what happens to the call when Expires has passed: reject (the default), skip,
	// fail, or escalate. With escalate the approval escalates at that time, and the call is
	// rejected when the same time has passed again.
	OnExpiry string
}

// Values of OnExpiry.
const (
	OnExpiryReject = "reject" // the model is informed that nobody approved
	OnExpirySkip   = "skip"   // the model is informed that the call was skipped
	OnExpiryFail   = "fail"   // the run fails

	OnExpiryEscalate = "escalate" // the approvers have the same time again; then the call is rejected
)

var onExpiries = []string{OnExpiryReject, OnExpirySkip, OnExpiryFail, OnExpiryEscalate}

const (
	maxApprovals     = 32
	maxApprovalTools = 64
	maxCondition     = 4 << 10
)

// appliesToTool reports whether one of the patterns of Tools matches a tool.
func (a Approval) appliesToTool(tool string) bool {
	return slices.ContainsFunc(a.Tools, func(pattern string) bool { return namesTool(pattern, tool) })
}

// namesTool reports whether a pattern of a definition matches a tool, given by its name for models.
// Models know the tool t of the MCP server s as s_t, and definitions as mcp:s/t.
func namesTool(pattern, tool string) bool {
	if server, rest, ok := strings.Cut(strings.TrimPrefix(pattern, mcpPrefix), "/"); ok && strings.HasPrefix(pattern, mcpPrefix) {
		pattern = server + "_" + rest
	}
	ok, _ := path.Match(pattern, tool) // an invalid pattern matches nothing
	return ok
}

const mcpPrefix = "mcp:"

// applies evaluates When for a call. A condition that fails counts as true.
func (a Approval) applies(call ProposedCall) bool {
	if a.When == "" {
		return true
	}
	c, err := compileCondition(a.When)
	if err != nil {
		return true
	}
	holds, err := c.holdsForAny(call)
	return holds || err != nil
}

// approvals reads the key approvals.
func (r *reader) approvals(into *[]Approval) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.SequenceNode {
			return "must be a list, not " + describe(node)
		}
		for i, entry := range node.Content {
			key := approvalKey(i)
			entry = resolve(entry)
			var a Approval
			if entry.Kind == yaml.MappingNode {
				r.mapping(key+".", entry, append([]field{
					{"tools", r.texts("tools", &a.Tools)}, {"when", text(&a.When)},
				}, r.decision(key, &a)...))
			} else {
				r.report("approvals", entry, key+" must have keys, not be "+describe(entry))
			}
			*into = append(*into, a)
		}
		return ""
	}
}

// decision returns the fields of a rule about approvers and times.
func (r *reader) decision(key string, a *Approval) []field {
	return []field{
		{"approvers", r.texts(key+".approvers", &a.Approvers)}, {"quorum", count(&a.Quorum)}, {"notByRequester", flag(&a.NotByRequester)},
		{"remind", duration(&a.Remind)}, {"escalate", r.escalations(key+".escalate", &a.Escalate)},
		{"expires", duration(&a.Expires)}, {"onExpiry", text(&a.OnExpiry)},
	}
}

// mistakes returns the mistakes of a rule whose path is key.
func (a Approval) mistakes(key string) []mistake {
	var found []mistake
	if n := len(a.Tools); n == 0 || n > maxApprovalTools {
		found = append(found, newMistake(key+".tools", "must name 1 to %d tools, not %d", maxApprovalTools, n))
	}
	for i, tool := range a.Tools {
		if !toolRule.MatchString(tool) {
			found = append(found, mistake{key + ".tools", i, fmt.Sprintf("%s.tools: %.80q must be a tool's name, or a pattern with *", key, tool)})
		}
	}
	switch {
	case len(a.When) > maxCondition:
		found = append(found, newMistake(key+".when", "must be at most %d bytes, not %d", maxCondition, len(a.When)))
	case a.When != "":
		if _, err := compileCondition(a.When); err != nil {
			found = append(found, newMistake(key+".when", "is not a valid condition: %s", err))
		}
	}
	return append(found, a.decisionMistakes(key)...)
}

// decisionMistakes returns the mistakes about approvers and times. Approve steps and soft limits
// have only this part of a rule.
func (a Approval) decisionMistakes(key string) []mistake {
	var found []mistake
	if a.Expires < 0 {
		found = append(found, newMistake(key+".expires", "must be greater than zero"))
	}
	if a.OnExpiry != "" && !slices.Contains(onExpiries, a.OnExpiry) {
		found = append(found, newMistake(key+".onExpiry", "%.80q must be reject, skip, fail or escalate", a.OnExpiry))
	}
	if a.OnExpiry != "" && a.Expires == 0 {
		found = append(found, newMistake(key+".onExpiry", "needs expires"))
	}
	return append(found, a.approverMistakes(key)...)
}

// Escalation adds approvers after some time without a decision.
type Escalation struct {
	// After is the time since the approval was opened.
	After time.Duration
	// To are the additional approvers, as in [Approval.Approvers]. At least one.
	To []string
}
