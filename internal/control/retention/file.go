package retention

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/internal/process/filewatch"
	"github.com/perdure/perdure/internal/process/yamlfile"
)

// Bounds of the file: its bytes, its tenants, the agents of each of its lists, and the shortest time
// to live.
const (
	maxFile    = 1 << 20
	maxTenants = 10_000
	maxAgents  = 10_000
	minTTL     = time.Second
)

// Keys of the file.
const (
	keyThreads = "threads"
	keyAudit   = "audit"
	keyAgents  = "agents"
	keyTenants = "tenants"
	keyDefault = "default"
)

// times are times to live by the names of what they are for. 0 = for ever; a missing one = the next
// more general rule.
type times map[string]time.Duration

// tenantTimes are the times to live of a tenant, and of agents in it.
type tenantTimes struct {
	times

	agents map[string]times
}

// file is a YAML file of times to live.
type file struct {
	digest    string // of the content
	byDefault times
	agents    map[string]times
	tenants   map[string]tenantTimes
}

// entries returns the default, the agents and the tenants, each with its times, as
// filewatch.Changes compares them.
func (f *file) entries() map[string]string {
	all := map[string]string{keyDefault: fmt.Sprint(f.byDefault)}
	for agent, times := range f.agents {
		all["agent "+agent] = fmt.Sprint(times)
	}
	for tenant, times := range f.tenants {
		all["tenant "+tenant] = fmt.Sprint(times.times, times.agents)
	}
	return all
}

// load reads a file. The error has the file's name, and the line of the mistake.
func load(name string) (*file, error) {
	data, err := yamlfile.Read(name, maxFile)
	if err != nil {
		return nil, err
	}
	parsed, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	parsed.digest = filewatch.DigestOf(data)
	return parsed, nil
}

// parse decodes a file. An empty one has no rules.
func parse(data []byte) (*file, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	f := &file{}
	if len(document.Content) == 0 {
		return f, nil
	}
	err := yamlfile.EachMember(document.Content[0], func(key, value *yaml.Node) (err error) {
		switch key.Value {
		case keyDefault:
			f.byDefault, err = parseTimes(value, keyThreads, keyAudit)
		case keyAgents:
			f.agents, err = parseAgents(value)
		case keyTenants:
			f.tenants, err = parseTenants(value)
		default:
			err = yamlfile.LineError(key, "unknown key %.40q: the file has default, agents and tenants", key.Value)
		}
		return err
	})
	return f, err
}

// parseTenants decodes the times of tenants.
func parseTenants(node *yaml.Node) (map[string]tenantTimes, error) {
	all := map[string]tenantTimes{}
	err := eachNamed(node, maxTenants, "tenant", func(name string, value *yaml.Node) error {
		t := tenantTimes{times: times{}}
		err := yamlfile.EachMember(value, func(key, value *yaml.Node) (err error) {
			if key.Value == keyAgents {
				t.agents, err = parseAgents(value)
				return err
			}
			return t.parse(key, value, []string{keyThreads, keyAudit, keyAgents})
		})
		all[name] = t
		return err
	})
	return all, err
}

// parseAgents decodes the times of agents.
func parseAgents(node *yaml.Node) (map[string]times, error) {
	all := map[string]times{}
	err := eachNamed(node, maxAgents, "agent", func(name string, value *yaml.Node) (err error) {
		all[name], err = parseTimes(value, keyThreads)
		return err
	})
	return all, err
}

// parseTimes decodes times with known names.
func parseTimes(node *yaml.Node, known ...string) (times, error) {
	t := times{}
	err := yamlfile.EachMember(node, func(key, value *yaml.Node) error { return t.parse(key, value, known) })
	return t, err
}

// parse decodes one time.
func (t times) parse(key, value *yaml.Node, known []string) error {
	if key.Value == keyAudit && !slices.Contains(known, keyAudit) {
		return yamlfile.LineError(key, "the audit log belongs to no agent: set audit in default, or in a tenant")
	}
	if !slices.Contains(known, key.Value) {
		return yamlfile.LineError(key, "unknown key %.40q: the keys are %v", key.Value, known)
	}
	ttl, err := time.ParseDuration(value.Value)
	if value.Kind != yaml.ScalarNode || err != nil || ttl != 0 && ttl < minTTL {
		return yamlfile.LineError(value, "%s: %.40q must be a time such as 720h, at least %s, or 0 for ever", key.Value, value.Value, minTTL)
	}
	t[key.Value] = ttl
	return nil
}

// eachNamed calls take for each member of a mapping of names of something, of which there may be at
// most limit.
func eachNamed(node *yaml.Node, limit int, what string, take func(name string, value *yaml.Node) error) error {
	if len(node.Content)/2 > limit {
		return yamlfile.LineError(node, "has more than %d %ss", limit, what)
	}
	return yamlfile.EachMember(node, func(key, value *yaml.Node) error {
		if key.Value == "" {
			return yamlfile.LineError(key, "the name of a %s must not be empty", what)
		}
		return take(key.Value, value)
	})
}
