package agents

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Approval is a rule: calls of some tools are made when a person has said so. The first rule that
// applies to a call is the one that counts.
type Approval struct {
	// Tools are names of tools of ours, as models call them, or patterns with * for any run of characters. At least one, at most 64.
	Tools []string

	// When is a condition in CEL over args, tool, agent, state, input and caller; the rule applies where it
	// is true, and where it fails, so that nothing slips through. Empty = always. At most 4 KiB.
	When string

	// Approvers may decide: a subject, or role:name for whoever has that role. None = whoever may use the thread.
	Approvers []string

	// Quorum is how many different people have to approve, 1 to 8. 0 = 1.
	Quorum int

	// NotByRequester keeps who asked for the run from deciding.
	NotByRequester bool

	// Remind is how often people are reminded that a decision is due. 0 = never.
	Remind time.Duration

	// Escalate adds approvers when nobody has decided for some time. In the order of their times, at most 4.
	Escalate []Escalation

	// Expires is how long there is to decide. 0 = for ever.
	Expires time.Duration

	// OnExpiry is what becomes of a call that nobody decides about in time: reject (the default), skip, fail,
	// or escalate, which is to reject it when the same time has passed again.
	OnExpiry string
}

// What may become of a call that nobody decides about in time.
const (
	OnExpiryReject = "reject" // the model is told that nobody approved
	OnExpirySkip   = "skip"   // the model is told that it was left out
	OnExpiryFail   = "fail"   // the run fails

	OnExpiryEscalate = "escalate" // all approvers have as long again; then it is rejected
)

var onExpiries = []string{OnExpiryReject, OnExpirySkip, OnExpiryFail, OnExpiryEscalate}

const (
	maxApprovals     = 32
	maxApprovalTools = 64
	maxCondition     = 4 << 10
)

// Asks finds the rule by which a person decides about a call; -1 = none.
func (d *Definition) Asks(call ProposedCall) int {
	return slices.IndexFunc(d.Approvals, func(a Approval) bool { return a.names(call.Tool) && a.applies(call) })
}

func (a Approval) names(tool string) bool {
	return slices.ContainsFunc(a.Tools, func(pattern string) bool { return namesTool(pattern, tool) })
}

// namesTool tells whether a pattern of a definition is about a tool, by the name that models say. Those of
// an MCP server are said with the server's name before them.
func namesTool(pattern, tool string) bool {
	if server, rest, ok := strings.Cut(strings.TrimPrefix(pattern, mcpPrefix), "/"); ok && strings.HasPrefix(pattern, mcpPrefix) {
		pattern = server + "_" + rest
	}
	ok, _ := path.Match(pattern, tool) // what is no pattern names nothing
	return ok
}

const mcpPrefix = "mcp:"

func (a Approval) applies(call ProposedCall) bool {
	if a.When == "" {
		return true
	}
	c, err := compileCondition(a.When)
	if err != nil {
		return true
	}
	holds, err := c.holds(call)
	return holds || err != nil
}

func approvalKey(i int) string { return fmt.Sprintf("approvals[%d]", i) }

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
				r.complain("approvals", entry, key+" must have keys, not be "+describe(entry))
			}
			*into = append(*into, a)
		}
		return ""
	}
}

// decision are the keys that say who decides, and until when.
func (r *reader) decision(key string, a *Approval) []field {
	return []field{
		{"approvers", r.texts(key+".approvers", &a.Approvers)}, {"quorum", count(&a.Quorum)}, {"notByRequester", flag(&a.NotByRequester)},
		{"remind", duration(&a.Remind)}, {"escalate", r.escalations(key+".escalate", &a.Escalate)},
		{"expires", duration(&a.Expires)}, {"onExpiry", text(&a.OnExpiry)},
	}
}

func (d *Definition) complainApprovals() []complaint {
	if len(d.Approvals) > maxApprovals {
		return []complaint{about("approvals", "must be at most %d, not %d", maxApprovals, len(d.Approvals))}
	}
	var found []complaint
	for i, a := range d.Approvals {
		found = append(found, a.complaints(approvalKey(i))...)
		found = append(found, d.complainUnused(approvalKey(i), a)...)
	}
	return found
}

// complainUnused finds names that none of the agent's tools has: a rule with a typing error would never ask.
func (d *Definition) complainUnused(key string, a Approval) []complaint {
	all := append(d.InlineTools(), d.Tools...)
	ours, _ := SplitTools(all)
	ours = append(ours, Delegates(all)...)
	for _, name := range Handoffs(all) {
		ours = append(ours, HandoffTool(name))
	}
	var found []complaint
	for i, name := range a.Tools {
		used := slices.ContainsFunc(ours, func(t string) bool { return t == name || namesTool(t, name) })
		if toolName.MatchString(name) && !used {
			found = append(found, complaint{key + ".tools", i, fmt.Sprintf("%s.tools: %q is none of the agent's tools", key, name)})
		}
	}
	return found
}

func (a Approval) complaints(key string) []complaint {
	var found []complaint
	if n := len(a.Tools); n == 0 || n > maxApprovalTools {
		found = append(found, about(key+".tools", "must name 1 to %d tools, not %d", maxApprovalTools, n))
	}
	for i, tool := range a.Tools {
		if !toolRule.MatchString(tool) {
			found = append(found, complaint{key + ".tools", i, fmt.Sprintf("%s.tools: %.80q must be a tool's name, or a pattern with *", key, tool)})
		}
	}
	switch {
	case len(a.When) > maxCondition:
		found = append(found, about(key+".when", "must be at most %d bytes, not %d", maxCondition, len(a.When)))
	case a.When != "":
		if _, err := compileCondition(a.When); err != nil {
			found = append(found, about(key+".when", "is no condition: %s", err))
		}
	}
	return append(found, a.complainDecision(key)...)
}

// complainDecision is about who decides, and until when.
func (a Approval) complainDecision(key string) []complaint {
	var found []complaint
	if a.Expires < 0 {
		found = append(found, about(key+".expires", "must be greater than zero"))
	}
	if a.OnExpiry != "" && !slices.Contains(onExpiries, a.OnExpiry) {
		found = append(found, about(key+".onExpiry", "%.80q must be reject, skip, fail or escalate", a.OnExpiry))
	}
	if a.OnExpiry != "" && a.Expires == 0 {
		found = append(found, about(key+".onExpiry", "needs expires"))
	}
	return append(found, a.complainApprovers(key)...)
}
