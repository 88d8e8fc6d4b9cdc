package quota

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/filewatch"
	"github.com/perdure/perdure/internal/process/yamlfile"
)

// Bounds of the file: its bytes, its tenants, the largest rate, and the largest quota.
const (
	maxFile    = 1 << 20
	maxTenants = 10_000
	maxRate    = 1_000_000
	maxCount   = 100_000_000_000_000 // RateLimit-Policy has at most 15 digits
)

// ofTenant are the bounds that a tenant may have. ofAll are those that only the default of a file
// may have: what they bound belongs to no tenant.
var (
	ofTenant = slices.Concat(Counted, []Name{SubjectPercent}, Rated)
	ofAll    = []Name{Unauthenticated}
)

// file is a YAML file of quotas: the bounds of all tenants, and those of single ones.
type file struct {
	Default limits
	Tenants map[string]limits

	digest string // of the content

	once   sync.Once
	labels []string // see shown
}

// shown returns the tenants that metrics show by name: the tenant default, and the first ones that the
// file lists. So no caller can make time series.
func (f *file) shown() []string {
	f.once.Do(func() {
		listed := slices.Sorted(maps.Keys(f.Tenants))
		f.labels = append([]string{auth.TenantDefault}, listed[:min(len(listed), maxLabels-1)]...)
		slices.Sort(f.labels)
		f.labels = slices.Compact(f.labels)
	})
	return f.labels
}

// entries returns the default and the tenants, each with its bounds, as filewatch.Changes compares them.
func (f *file) entries() map[string]string {
	all := map[string]string{"default": fmt.Sprint(f.Default)}
	for tenant, bounds := range f.Tenants {
		all["tenant "+tenant] = fmt.Sprint(bounds)
	}
	return all
}

// load reads a file of quotas. The error has the file's name, and the line of the mistake.
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

// parse decodes a file of quotas. An empty one has the defaults.
func parse(data []byte) (*file, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	f := &file{Tenants: map[string]limits{}}
	if len(document.Content) == 0 {
		return f, nil
	}
	err := yamlfile.EachMember(document.Content[0], func(key, value *yaml.Node) (err error) {
		switch key.Value {
		case "default":
			f.Default, err = parseLimits(value, slices.Concat(ofTenant, ofAll))
		case "tenants":
			err = f.parseTenants(value)
		default:
			err = yamlfile.LineError(key, "unknown key %.40q: the file has default and tenants", key.Value)
		}
		return err
	})
	return f, err
}

// parseTenants decodes the bounds of single tenants.
func (f *file) parseTenants(node *yaml.Node) error {
	if len(node.Content)/2 > maxTenants {
		return yamlfile.LineError(node, "has more than %d tenants", maxTenants)
	}
	return yamlfile.EachMember(node, func(key, value *yaml.Node) (err error) {
		if key.Value == "" {
			return yamlfile.LineError(key, "the name of a tenant must not be empty")
		}
		f.Tenants[key.Value], err = parseLimits(value, ofTenant)
		return err
	})
}

// parseLimits decodes the bounds of a tenant, which may have the known names.
func parseLimits(node *yaml.Node, known []Name) (limits, error) {
	parsed := limits{}
	err := yamlfile.EachMember(node, func(key, value *yaml.Node) error {
		name := Name(key.Value)
		if slices.Contains(ofAll, name) && !slices.Contains(known, name) {
			return yamlfile.LineError(key, "%s belongs to no tenant: set it in default", name)
		}
		if !slices.Contains(known, name) {
			return yamlfile.LineError(key, "unknown quota %.40q: the quotas are %v", key.Value, known)
		}
		limit, err := parseLimit(value, maxOf(name))
		if err == nil && limit != 0 {
			parsed[name] = limit
		}
		return err
	})
	return parsed, err
}

// maxOf returns the largest value of a bound.
func maxOf(name Name) int64 {
	switch {
	case name == SubjectPercent:
		return 100
	case name == Unauthenticated, slices.Contains(Rated, name):
		return maxRate
	}
	return maxCount
}

// parseLimit decodes a limit of at most most; 0 = the default.
func parseLimit(node *yaml.Node, most int64) (Limit, error) {
	if node.Value == Unlimited.String() {
		return Unlimited, nil
	}
	n, err := strconv.ParseInt(node.Value, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, yamlfile.LineError(node, "%.40q must be a whole number from 0 to %d, or unlimited", node.Value, most)
	}
	return Limit(n), nil
}
