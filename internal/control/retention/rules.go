package retention

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/process/filewatch"
)

// defaultAudit is how long entries of the audit log are kept if no rule of the file says so: a year.
const defaultAudit = 8760 * time.Hour

// Rule is a time to live.
type Rule struct {
	// TTL is the time to live; 0 = for ever.
	TTL time.Duration
	// Name is the place of the rule in the file, such as tenants.acme.threads; "" = Perdure's
	// default.
	Name string
}

// String returns the rule as audit entries have it.
func (r Rule) String() string {
	if r.Name == "" {
		return keyDefault + "=" + r.TTL.String()
	}
	return r.Name + "=" + r.TTL.String()
}

// Rules has the times to live of all tenants and agents. A nil Rules has the defaults. It is safe
// for concurrent use.
type Rules struct {
	// Changes tells which contents of the file are in use. The names of its entries are default,
	// "agent support" and "tenant acme".
	filewatch.Changes

	file    atomic.Pointer[file]
	watch   *filewatch.Watch // nil = no file is watched
	changed chan struct{}    // gets an element when the file has changed, unless it has one
}

// Open reads a file of rules, and follows its changes until Close, which the caller must call. A
// changed file with a mistake is logged, and the rules stay as they are. Without a file ("") the
// rules are the defaults. The error of an invalid file names its line.
func Open(name string, logger *slog.Logger) (*Rules, error) {
	r := &Rules{changed: make(chan struct{}, 1)}
	r.file.Store(&file{})
	if name == "" {
		return r, nil
	}
	r.watch = filewatch.Start(func() {
		if err := r.reload(name); err != nil {
			logger.Warn("the file of retention rules is invalid: the API keeps the rules that it had", "error", err)
		} else {
			logger.Info("the file of retention rules has changed")
		}
	}, name)
	if err := r.reload(name); err != nil {
		r.watch.Stop()
		return nil, err
	}
	return r, nil
}

// Parse returns rules with the content of a file. They need no Close.
func Parse(data []byte) (*Rules, error) {
	parsed, err := parse(data)
	if err != nil {
		return nil, err
	}
	r := &Rules{}
	r.file.Store(parsed)
	return r, nil
}

// Close ends the watch of the file.
func (r *Rules) Close() {
	if r.watch != nil {
		r.watch.Stop()
	}
}

// reload reads the file.
func (r *Rules) reload(name string) error {
	f, err := load(name)
	if err == nil {
		r.file.Store(f)
		r.Take(f.digest, f.entries())
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}
	return err
}

// changes gets an element after the file has changed; nil = there is none.
func (r *Rules) changes() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.changed
}

// current returns the file.
func (r *Rules) current() *file {
	if r == nil {
		return &file{}
	}
	return r.file.Load()
}

// Threads returns the rule for the threads of a tenant that an agent has: that of the agent in the
// tenant, else of the tenant, else of the agent, else the default.
func (r *Rules) Threads(tenant, agent string) Rule {
	f := r.current()
	t := f.tenants[tenant]
	for _, place := range []struct {
		of   times
		name string
	}{
		{t.agents[agent], keyTenants + "." + tenant + "." + keyAgents + "." + agent},
		{t.times, keyTenants + "." + tenant},
		{f.agents[agent], keyAgents + "." + agent},
		{f.byDefault, keyDefault},
	} {
		if ttl, ok := place.of[keyThreads]; ok {
			return Rule{ttl, place.name + "." + keyThreads}
		}
	}
	return Rule{}
}

// Audit returns a function with the rules for the entries of the audit log.
func (r *Rules) Audit() func(store.Chain) Rule {
	f := r.current()
	byDefault := Rule{TTL: defaultAudit}
	if ttl, ok := f.byDefault[keyAudit]; ok {
		byDefault = Rule{ttl, keyDefault + "." + keyAudit}
	}
	chains := map[store.Chain]Rule{}
	for tenant, t := range f.tenants {
		if ttl, ok := t.times[keyAudit]; ok {
			chains[store.OfTenant(tenant)] = Rule{ttl, keyTenants + "." + tenant + "." + keyAudit}
		}
	}
	return func(c store.Chain) Rule {
		if rule, ok := chains[c]; ok {
			return rule
		}
		return byDefault
	}
}

// shortest returns the shortest time to live of threads in a tenant; 0 = all of them are kept for
// ever.
func (r *Rules) shortest(tenant string) time.Duration {
	f := r.current()
	t := f.tenants[tenant]
	var least time.Duration
	consider := func(of times) {
		if ttl := of[keyThreads]; ttl > 0 && (least == 0 || ttl < least) {
			least = ttl
		}
	}
	consider(f.byDefault)
	consider(t.times)
	for _, of := range f.agents {
		consider(of)
	}
	for _, of := range t.agents {
		consider(of)
	}
	return least
}

// shortestOfAll returns the shortest time to live of the file; 0 = it has none.
func (r *Rules) shortestOfAll() time.Duration {
	f := r.current()
	least := r.shortest("")
	consider := func(of times) {
		for _, ttl := range of {
			if ttl > 0 && (least == 0 || ttl < least) {
				least = ttl
			}
		}
	}
	consider(f.byDefault)
	for _, t := range f.tenants {
		consider(t.times)
		for _, of := range t.agents {
			consider(of)
		}
	}
	return least
}
