package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// pairing is the comparison of two builds, which were measured in turns.
type pairing struct {
	Date    string  `json:"date"`
	Commit  string  `json:"commit"`
	Base    string  `json:"base"`
	Machine machine `json:"machine"`
	Plan    *plan   `json:"plan"`
	Rows    []*pair `json:"rows"`
}

// pair is one row of a pairing.
type pair struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	verdict
}

// pairAll measures two builds in turns, one round each. The order is reversed in each round (ABBA), so
// that a drift of the machine affects both.
func (b *bench) pairAll(ctx context.Context, base build) (*pairing, error) {
	p := &pairing{Date: time.Now().UTC().Format(time.DateOnly), Commit: b.this.commit, Base: base.commit, Machine: thisMachine(), Plan: b.plan}
	for i := range b.plan.Repetitions {
		for _, isBase := range turns(i) {
			measured := b.this
			if isBase {
				measured = base
			}
			b.tell("round %d of %d: %s", i+1, b.plan.Repetitions, measured.commit)
			r, err := b.of(measured).measureAll(ctx)
			if err != nil {
				return nil, fmt.Errorf("round %d of %s: %w", i+1, measured.commit, err)
			}
			p.add(r.rows(), isBase)
		}
	}
	p.judge()
	return p, nil
}

// turns returns the order of the builds in a round: whether the first and the second one is the base.
func turns(round int) []bool {
	return []bool{round%2 == 0, round%2 == 1}
}

// judge compares the values of all rounds.
func (p *pairing) judge() {
	for _, row := range p.Rows {
		row.verdict = compareRounds(row.Base, row.Head)
	}
}

// of returns a bench that measures another build, one repetition at a time.
func (b *bench) of(measured build) *bench {
	other, plan := *b, *b.plan
	plan.Repetitions = 1
	other.plan, other.measured = &plan, measured
	return &other
}

// add adds the rows of a round. Rows stay in their order; a row that only one build has is at the end.
func (p *pairing) add(rows []row, isBase bool) {
	for _, r := range rows {
		to := p.row(r)
		if isBase {
			to.Base = append(to.Base, r.value.Value)
		} else {
			to.Head = append(to.Head, r.value.Value)
		}
	}
}

func (p *pairing) row(r row) *pair {
	for _, known := range p.Rows {
		if known.Name == r.name {
			return known
		}
	}
	added := &pair{Name: r.name, Unit: r.value.Unit}
	p.Rows = append(p.Rows, added)
	return added
}

// markdown returns the pairing in Markdown.
func (p *pairing) markdown() string {
	var b strings.Builder
	m := p.Machine
	fmt.Fprintf(&b, "# Bench, %s, commit %s against %s\n\n", p.Date, p.Commit, p.Base)
	fmt.Fprintf(&b, "%s. Medians of %d rounds of each build, in turns. × = in proportion to %s.\n", m, p.Plan.Repetitions, p.Base)
	b.WriteString("A difference is *beyond noise* if the ranges of the rounds do not overlap.\n\n")
	fmt.Fprintf(&b, "| | %s | %s | | beyond noise |\n|---|---:|---:|---:|---|\n", p.Base, p.Commit)
	for _, row := range p.Rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.Name, row.middle(row.Base), row.middle(row.Head), row.proportion(), row.judgment())
	}
	return b.String()
}

func (p *pair) middle(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return finding{Value: median(values), Unit: p.Unit}.String()
}

func (p *pair) proportion() string {
	if p.Ratio == 0 {
		return "–"
	}
	return fmt.Sprintf("×%.2f", p.Ratio)
}

func (p *pair) judgment() string {
	switch {
	case !p.Beyond:
		return ""
	case median(p.Head) < median(p.Base):
		return "lower"
	}
	return "higher"
}

// save writes the pairing as <date>-<commit>-against-<base>.md and .json.
func (p *pairing) save(dir string) error {
	body, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return saveResult(dir, p.Date+"-"+p.Commit+"-against-"+p.Base, body, p.markdown())
}
