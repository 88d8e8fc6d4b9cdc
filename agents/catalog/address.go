package catalog

import (
	"cmp"
	"regexp"
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

// draftPrefix begins the keys of the records of all drafts.
const draftPrefix = "draft."

// platformOwner is the owner of the platform's agents in keys of drafts. It is no stream.KeyToken.
const platformOwner = "="

// owner returns the agent's owner in keys of drafts.
func (a address) owner() string { return cmp.Or(a.tenant, platformOwner) }

// draftKey returns the key of the record of a draft.
func (a address) draftKey(revision string) string {
	return draftPrefix + a.owner() + "." + a.name + "." + revision
}

// draftDefinitionKey returns the key of the definition of a draft.
func (a address) draftDefinitionKey(revision string) string {
	return "draft/" + a.owner() + "/" + a.name + "/" + revision
}

// parseDraftKey returns the agent and the revision of the key of a draft's record.
func parseDraftKey(key string) (a address, revision string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(key, draftPrefix), ".")
	if len(parts) != 3 {
		return a, "", false
	}
	a = address{tenant: parts[0], name: parts[1]}
	if a.tenant == platformOwner {
		a.tenant = ""
	}
	return a, parts[2], true
}

// namePattern and revisionPattern match what may be part of a key.
var (
	namePattern     = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	revisionPattern = regexp.MustCompile(`^(` + stream.TenantRevision + `)?[0-9a-f]{64}$`)
)

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
