package usage

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/stream"
)

// Group is what a report is grouped by.
type Group string

// The groups.
const (
	ByAgent  Group = "agent"
	ByModel  Group = "model"
	ByTenant Group = "tenant"
	ByDay    Group = "day"
)

// Groups are all groups.
var Groups = []Group{ByAgent, ByModel, ByTenant, ByDay}

// Query selects the runs of a report. From and To are days in UTC; both are included, and To must
// not be before From. Tenant and Agent select runs; "" = all.
type Query struct {
	Tenant, Agent string
	From, To      time.Time
	GroupBy       []Group
}

// Item is the usage of one group of runs. Of Agent to Day it has those by which the report is
// grouped.
type Item struct {
	Day    string `json:"day,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	Agent  string `json:"agent,omitempty"`
	Model  string `json:"model,omitempty"` // "" also = runs that have called no model

	// Runs are the runs that ended, without those that ended with an interrupt: Interrupted counts
	// them, and Runs the runs that continue them. Failed and Cancelled are runs of Runs. Grouped by
	// model, a run counts for each model that it has called.
	Runs         int64 `json:"runs"`
	Failed       int64 `json:"failed"`
	Cancelled    int64 `json:"cancelled"`
	Interrupted  int64 `json:"interrupted"`
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
	TotalTokens  int64 `json:"totalTokens"`
	// Cost is nil if none is known, or if the costs have several currencies.
	Cost *Cost `json:"cost,omitempty"`
	// Seconds is the sum of the durations of the runs and the interrupted runs.
	Seconds float64 `json:"seconds"`
}

// Cost is an amount of money.
type Cost struct {
	Amount   agents.Money `json:"amount"`
	Currency string       `json:"currency,omitempty"`
}

// MaxItems bounds the items of a report.
const MaxItems = 10_000

// ErrTooManyItems: a report has more than MaxItems items.
var ErrTooManyItems = errors.New("usage: the report has too many items")

// Report returns the items of a report, sorted by their groups. Errors: ErrTooManyItems,
// stream.ErrUnavailable.
func (l *Ledger) Report(ctx context.Context, q Query) ([]Item, error) {
	var filters []string
	for day := q.From; !day.After(q.To); day = day.AddDate(0, 0, 1) {
		filters = append(filters, key(q.Tenant, day.Format(time.DateOnly), q.Agent))
	}
	watcher, err := l.kv.WatchFiltered(ctx, filters, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, asUnavailable(err)
	}
	defer stream.StopWatch(watcher)
	sum, seen := sums{}, map[string]bool{}
	for {
		select {
		case kept, ok := <-watcher.Updates():
			if !ok {
				return nil, asUnavailable(errors.New("the connection was closed"))
			}
			if kept == nil { // all entries have arrived
				return sum.items(), nil
			}
			// An entry that a worker changes meanwhile may arrive again.
			if seen[kept.Key()] {
				continue
			}
			seen[kept.Key()] = true
			e, err := decode(kept)
			if err != nil {
				return nil, err
			}
			if sum.add(e, q.GroupBy); len(sum) > MaxItems {
				return nil, ErrTooManyItems
			}
		case <-ctx.Done():
			return nil, asUnavailable(context.Cause(ctx))
		}
	}
}

// group identifies an item.
type group struct{ day, tenant, agent, model string }

// sum is the usage of an item. Its amounts are by currency.
type sum struct {
	counts
	amounts map[string]*amounts
}

// cost returns the cost; nil = none is known, or the costs have several currencies. Costs of an unknown
// currency, which those of runs are that the API has ended, are taken to be of the currency of the
// others.
func (s *sum) cost() *Cost {
	var cost *Cost
	for _, currency := range slices.Sorted(maps.Keys(s.amounts)) { // the unknown one is the first
		a := s.amounts[currency]
		switch {
		case a.Cost == nil:
		case cost == nil:
			cost = &Cost{*a.Cost, currency}
		case cost.Currency != "":
			return nil
		default:
			cost = &Cost{cost.Amount + *a.Cost, currency}
		}
	}
	return cost
}

// sums are the items of a report while it is made.
type sums map[group]*sum

// add adds an entry.
func (s sums) add(e entry, by []Group) {
	var g group
	if slices.Contains(by, ByDay) {
		g.day = e.Day
	}
	if slices.Contains(by, ByTenant) {
		g.tenant = e.Tenant
	}
	if slices.Contains(by, ByAgent) {
		g.agent = e.Agent
	}
	byModel := slices.Contains(by, ByModel)
	if !byModel {
		s.of(g).counts.add(e.All)
	}
	for _, m := range e.Models {
		if byModel {
			g.model = m.Model
			s.of(g).counts.add(m.counts)
		}
		all := s.of(g).amounts
		if all[m.Currency] == nil {
			all[m.Currency] = &amounts{}
		}
		all[m.Currency].add(m.amounts)
	}
}

// of returns the sum of a group, which it adds if it is missing.
func (s sums) of(g group) *sum {
	if s[g] == nil {
		s[g] = &sum{amounts: map[string]*amounts{}}
	}
	return s[g]
}

// items returns the items, sorted.
func (s sums) items() []Item {
	items := []Item{}
	for g, sum := range s {
		item := Item{
			Day: g.day, Tenant: g.tenant, Agent: g.agent, Model: g.model,
			Runs: sum.Runs, Failed: sum.Failed, Cancelled: sum.Cancelled, Interrupted: sum.Interrupted, Seconds: float64(sum.Milliseconds) / 1000,
		}
		for _, a := range sum.amounts {
			item.InputTokens, item.OutputTokens, item.TotalTokens = item.InputTokens+a.Input, item.OutputTokens+a.Output, item.TotalTokens+a.Total
		}
		item.Cost = sum.cost()
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model))
	})
	return items
}
