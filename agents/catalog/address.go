package catalog

import (
	"strconv"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/stream"
)

// address identifies an agent: the token of its tenant in keys ("" = it belongs to the platform),
// and its name. Neither has a dot or a slash.
type address struct{ tenant, name string }

// addressOf returns the address of an agent of a tenant; "" = of the platform.
func addressOf(tenant, name string) address {
	if tenant == "" {
		return address{name: name}
	}
	return address{stream.KeyToken(tenant), name}
}

// candidates returns the agents that a name may mean for a tenant, the first one that exists.
func candidates(tenant, name string) []address {
	if tenant == "" {
		return []address{addressOf("", name)}
	}
	return []address{addressOf(tenant, name), addressOf("", name)}
}

// isOf reports whether the agent belongs to a tenant; "" = to the platform.
func (a address) isOf(tenant string) bool { return a == addressOf(tenant, a.name) }

// publishedPrefix begins the keys of all publications.
const publishedPrefix = "published."

// publishedKeys returns the beginning of the keys of the agent's publications.
func (a address) publishedKeys() string {
	if a.tenant == "" {
		return publishedPrefix + a.name + "."
	}
	return publishedPrefix + a.tenant + "." + a.name + "."
}

// definitionKey returns the key of a definition.
func (a address) definitionKey(revision string) string {
	if a.tenant == "" {
		return a.name + "/" + revision
	}
	return a.tenant + "/" + a.name + "/" + revision
}

// parsePublishedKey returns the agent and the number of a publication's key.
func parsePublishedKey(key string) (a address, number uint64, ok bool) {
	parts := strings.Split(strings.TrimPrefix(key, publishedPrefix), ".")
	switch len(parts) {
	case 2:
		a = address{name: parts[0]}
	case 3:
		a = address{tenant: parts[0], name: parts[1]}
	default:
		return a, 0, false
	}
	number, err := strconv.ParseUint(parts[len(parts)-1], 10, 64)
	return a, number, err == nil
}

// Referrer returns the tenant for which the names in a definition are looked up: that of the run if
// the revision is one of a tenant's agent, and "" for one of the platform.
func Referrer(tenant, revision string) string {
	if stream.IsTenantRevision(revision) {
		return tenant
	}
	return ""
}

// RevisionOf returns the revision of a definition of an agent of a tenant; "" = of the platform. The
// revisions of both differ, although the definition is the same: the names in it may mean different
// agents.
func RevisionOf(tenant string, d *agents.Definition) string {
	if tenant == "" {
		return d.Revision()
	}
	return stream.TenantRevision + d.Revision()
}
