package usage

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/runs"
)

// entry is an entry of the bucket.
type entry struct {
	Tenant string `json:"tenant"`
	Day    string `json:"day"` // as of [time.DateOnly]
	Agent  string `json:"agent"`
	// All counts all runs, without tokens and cost.
	All    counts       `json:"all"`
	Models []modelUsage `json:"models,omitempty"`
	// Counted are the IDs of the runs that were counted last, oldest first. A run in this list is not
	// counted again.
	Counted []string `json:"counted"`
}

// counts are how many runs ended, and how long they took. Runs is without Interrupted: the run that
// continues an interrupted one counts for both.
type counts struct {
	Runs         int64 `json:"runs"`
	Failed       int64 `json:"failed,omitempty"`
	Cancelled    int64 `json:"cancelled,omitempty"`
	Interrupted  int64 `json:"interrupted,omitempty"`
	Milliseconds int64 `json:"milliseconds,omitempty"`
}

func (c *counts) add(other counts) {
	c.Runs, c.Failed, c.Cancelled = c.Runs+other.Runs, c.Failed+other.Failed, c.Cancelled+other.Cancelled
	c.Interrupted, c.Milliseconds = c.Interrupted+other.Interrupted, c.Milliseconds+other.Milliseconds
}

// countsOf returns the counts of one run. A part of a run has none.
func countsOf(r Run) counts {
	if r.Part != "" {
		return counts{}
	}
	c := counts{Runs: 1, Milliseconds: max(0, r.Duration.Milliseconds())}
	switch r.Outcome {
	case runs.OutcomeError:
		c.Failed = 1
	case runs.OutcomeCancelled:
		c.Cancelled = 1
	case runs.OutcomeInterrupt:
		c.Runs, c.Interrupted = 0, 1
	}
	return c
}

// amounts are tokens and their cost. Cost is nil if none is known.
type amounts struct {
	Input  int64         `json:"input,omitempty"`
	Output int64         `json:"output,omitempty"`
	Total  int64         `json:"total,omitempty"`
	Cost   *agents.Money `json:"cost,omitempty"`
	// Currency is that of Cost, such as USD; "" = it is unknown.
	Currency string `json:"currency,omitempty"`
}

// modelUsage is what the runs that called a model have used of it. Model is "provider/model"; "" =
// runs that have called none, and models without a name.
type modelUsage struct {
	Model string `json:"model,omitempty"`
	counts
	amounts
}

const (
	// maxCounted bounds entry.Counted. A run is counted again within seconds; after the death of a
	// worker, within about a minute.
	maxCounted = 256
	// maxModels bounds entry.Models, since a provider may answer with another model each time.
	maxModels = 64
)

// add adds a run with the ID id.
func (e *entry) add(r Run, id string) {
	e.Tenant, e.Day, e.Agent = r.Tenant, r.Ended.UTC().Format(time.DateOnly), r.Agent
	one := countsOf(r)
	e.All.add(one)
	used := r.Usage
	if len(used) == 0 {
		used = []runs.Usage{{}}
	}
	for _, u := range used {
		m := e.model(modelName(u), r.Currency)
		m.counts.add(one)
		m.amounts.add(amountsOf(u, r.Currency))
	}
	e.Counted = append(e.Counted[max(0, len(e.Counted)+1-maxCounted):], id)
}

// model returns the usage of a model in a currency, which it adds if it is missing. The models that
// exceed maxModels share one without a name.
func (e *entry) model(name, currency string) *modelUsage {
	find := func() int {
		return slices.IndexFunc(e.Models, func(m modelUsage) bool { return m.Model == name && m.Currency == currency })
	}
	i := find()
	if i < 0 && len(e.Models) >= maxModels {
		name = ""
		i = find()
	}
	if i < 0 {
		e.Models = append(e.Models, modelUsage{Model: name, amounts: amounts{Currency: currency}})
		i = len(e.Models) - 1
	}
	return &e.Models[i]
}

// modelName returns "provider/model", as definitions name models; "" = it has no name.
func modelName(u runs.Usage) string {
	if u.Provider == "" || u.Model == "" {
		return u.Provider + u.Model
	}
	return u.Provider + "/" + u.Model
}

// amountsOf returns the amounts of usage; unknown tokens are zero.
func amountsOf(u runs.Usage, currency string) amounts {
	a := amounts{Total: runs.Tokens([]runs.Usage{u}), Currency: currency}
	if u.Input != nil {
		a.Input = *u.Input
	}
	if u.Output != nil {
		a.Output = *u.Output
	}
	if u.Cost != nil {
		cost := agents.Money(*u.Cost)
		a.Cost = &cost
	}
	return a
}

// add adds amounts of the same currency.
func (a *amounts) add(other amounts) {
	a.Input, a.Output, a.Total = a.Input+other.Input, a.Output+other.Output, a.Total+other.Total
	if other.Cost != nil {
		sum := *other.Cost
		if a.Cost != nil {
			sum += *a.Cost
		}
		a.Cost = &sum
	}
}

// decode decodes an entry of the bucket.
func decode(kept jetstream.KeyValueEntry) (e entry, err error) {
	if err := json.Unmarshal(kept.Value(), &e); err != nil {
		return entry{}, fmt.Errorf("usage: entry %s: %w", kept.Key(), err)
	}
	return e, nil
}
