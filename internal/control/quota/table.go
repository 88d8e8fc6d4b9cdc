package quota

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/filewatch"
	"github.com/perdure/perdure/internal/process/telemetry"
)

// Table has the bounds of all tenants. A nil Table has the defaults. It is safe for concurrent use.
type Table struct {
	// Changes tells which contents of the file are in use. The names of its entries are default, and
	// "tenant acme".
	filewatch.Changes

	file   atomic.Pointer[file]
	watch  *filewatch.Watch // nil = no file is watched
	logger *slog.Logger     // nil = the table does not warn
	// isAnonymous tells that only the file has rates, see Open.
	isAnonymous bool

	mu sync.Mutex
	// warned has the quotas of which a tenant has at least warnPercent, since the warning.
	warned map[warning]bool
}

// warning identifies the warning about a quota of a tenant.
type warning struct {
	tenant string
	name   Name
}

const (
	// warnPercent is the part of a quota at which the API logs a warning, in percent.
	warnPercent = 80
	// maxWarnings bounds the warnings that a table remembers. Beyond it, all are forgotten.
	maxWarnings = 10_000
)

// Open reads a file of quotas, and follows its changes until Close, which the caller must call. A
// changed file with a mistake is logged, and the table stays as it is. Without a file ("") the table
// has the defaults. The error of an invalid file names its line.
//
// isAnonymous tells that all callers are one anonymous caller. Then there are no rates by default:
// the callers would share them.
func Open(name string, isAnonymous bool, logger *slog.Logger) (*Table, error) {
	t := &Table{logger: logger, isAnonymous: isAnonymous, warned: map[warning]bool{}}
	t.file.Store(&file{})
	if name == "" {
		return t, nil
	}
	t.watch = filewatch.Start(func() {
		if err := t.reload(name); err != nil {
			logger.Warn("the file of quotas is invalid: the process keeps the quotas that it had", "error", err)
		} else {
			logger.Info("the file of quotas has changed", "tenants", len(t.Listed()))
		}
	}, name)
	if err := t.reload(name); err != nil {
		t.watch.Stop()
		return nil, err
	}
	return t, nil
}

// Parse returns a table with the content of a file. It needs no Close.
func Parse(data []byte) (*Table, error) {
	parsed, err := parse(data)
	if err != nil {
		return nil, err
	}
	t := &Table{}
	t.file.Store(parsed)
	return t, nil
}

// Close ends the watch of the file.
func (t *Table) Close() {
	if t.watch != nil {
		t.watch.Stop()
	}
}

// reload reads the file.
func (t *Table) reload(name string) error {
	f, err := load(name)
	if err == nil {
		t.file.Store(f)
		t.Take(f.digest, f.entries())
	}
	return err
}

// Of returns a bound of a tenant: that of the tenant, else the file's default, else Perdure's.
func (t *Table) Of(tenant string, name Name) Limit {
	if t != nil {
		f := t.file.Load()
		if limit, ok := f.Tenants[tenant][name]; ok {
			return limit
		}
		if limit, ok := f.Default[name]; ok {
			return limit
		}
		if t.isAnonymous && (name == Firings || slices.Contains(Rated, name)) {
			return Unlimited
		}
	}
	return defaults[name]
}

// maxLabels bounds the tenants that metrics show by name. A metric has at most 2,000 series, and each
// tenant has one for each quota and rate.
const maxLabels = 100

// otherTenants is the label of all tenants that metrics do not show by name.
const otherTenants = "_other"

// labels returns the tenants that metrics show by name, sorted.
func (t *Table) labels() []string {
	if t == nil {
		return []string{auth.TenantDefault}
	}
	return t.file.Load().shown()
}

// label returns the label of a tenant in metrics.
func (t *Table) label(tenant string) string {
	if _, isShown := slices.BinarySearch(t.labels(), tenant); isShown {
		return tenant
	}
	return otherTenants
}

// Listed returns the tenants that the file names, sorted.
func (t *Table) Listed() []string {
	if t == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(t.file.Load().Tenants))
}

// check returns an *ExceededError, and counts it, if a tenant that has used so much of a quota may
// not have n more. It logs a warning when the tenant reaches warnPercent of the quota.
func (t *Table) check(tenant string, name Name, used, n int64) error {
	limit := t.Of(tenant, name)
	t.warn(tenant, name, limit, used)
	if !limit.Permits(used, n) {
		telemetry.QuotaRefused(t.label(tenant), string(name))
		return &ExceededError{Quota: name, Limit: limit, Used: used}
	}
	return nil
}

// subjectLimit returns how much of the limit of its tenant a subject may have. All anonymous
// callers of a tenant have the subject "", and may have as much as the tenant.
func (t *Table) subjectLimit(tenant, subject string, limit Limit) Limit {
	percent := t.Of(tenant, SubjectPercent)
	if subject == "" || limit == Unlimited || percent == Unlimited {
		return limit
	}
	return max(1, limit*percent/100)
}

// refuseSubject returns the *ExceededError of a subject that has used its part of a quota, and
// counts it.
func (t *Table) refuseSubject(tenant string, name Name, limit Limit, used int64) error {
	telemetry.QuotaRefused(t.label(tenant), string(name))
	return &ExceededError{Quota: name, Limit: limit, Used: used, OfSubject: true}
}

// warn logs a warning once each time that a tenant reaches warnPercent of a quota.
func (t *Table) warn(tenant string, name Name, limit Limit, used int64) {
	if t == nil || t.logger == nil || limit == Unlimited {
		return
	}
	key, isNear := warning{tenant, name}, used*100 >= int64(limit)*warnPercent
	t.mu.Lock()
	isKnown := t.warned[key]
	switch {
	case !isNear:
		delete(t.warned, key)
	case !isKnown:
		if len(t.warned) >= maxWarnings {
			clear(t.warned)
		}
		t.warned[key] = true
	}
	t.mu.Unlock()
	if isNear && !isKnown {
		telemetry.QuotaWarned(t.label(tenant), string(name))
		t.logger.Warn("a tenant has almost reached a quota", "tenant", tenant, "quota", name, "used", used, "limit", int64(limit))
	}
}
