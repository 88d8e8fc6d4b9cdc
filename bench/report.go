package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// report has all results.
type report struct {
	Date        string                `json:"date"`
	Commit      string                `json:"commit"`
	Machine     machine               `json:"machine"`
	Plan        *plan                 `json:"plan"`
	Repetitions map[string][]measures `json:"results"` // by system
	Pipelines   map[string][]versus   `json:"pipelines,omitempty"`
	Scales      map[string][]finding  `json:"scales,omitempty"`
}

// markdown returns the report in Markdown.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Bench, %s, commit %s\n\n", r.Date, r.Commit)
	fmt.Fprintf(&b, "%s. Medians of %d repetitions; runs of %d tokens, paced ones at one per %s.\n",
		r.Machine, r.Plan.Repetitions, tokensPerRun, tokenInterval)
	b.WriteString("Client and model ran on the same machine. × = in proportion to the proxy, which stores nothing.\n\n")
	if len(r.Repetitions) > 0 {
		r.writeTable(&b)
	}
	for _, c := range comparisons {
		if rows := r.Pipelines[c.name]; len(rows) > 0 {
			fmt.Fprintf(&b, "\n## %s: %d\n\n| | Perdure | plain | |\n|---|---:|---:|---:|\n", c.title, r.Plan.Pipelines[c.name])
			for _, row := range rows {
				fmt.Fprintf(&b, "| %s | %s | %s | ×%.2g |\n", row.What, finding{Value: row.Perdure, Unit: row.Unit}, finding{Value: row.Plain, Unit: row.Unit}, row.Perdure/row.Plain)
			}
		}
	}
	for _, s := range scales {
		if findings := r.Scales[s.name]; len(findings) > 0 {
			fmt.Fprintf(&b, "\n## %s: %d\n\n| | |\n|---|---:|\n", s.title, r.Plan.Scales[s.name])
			for _, f := range findings {
				fmt.Fprintf(&b, "| %s | %s |\n", f.What, f)
			}
		}
	}
	return b.String()
}

// writeTable writes the measures of all systems as a table.
func (r *report) writeTable(b *strings.Builder) {
	results := map[string]measures{}
	head, rule := "|", "|---|"
	for _, s := range systems {
		if len(r.Repetitions[s.name]) > 0 {
			results[s.name] = medians(r.Repetitions[s.name])
			head += " | " + s.title
			rule += "---:|"
		}
	}
	fmt.Fprintf(b, "%s |\n%s\n", head, rule)
	for _, row := range table {
		fmt.Fprintf(b, "| %s", row.title)
		for _, s := range systems {
			if m, ok := results[s.name]; ok {
				b.WriteString(" | " + cell(m, results["proxy"], row.measure, row.digits, row.ratio && s.name != "proxy"))
			}
		}
		b.WriteString(" |\n")
	}
}

// cell shows a number and its ratio to the proxy's.
func cell(m, proxy measures, name measure, digits int, ratio bool) string {
	value, ok := m[name]
	if !ok {
		return "–"
	}
	text := fmt.Sprintf("%.*f", digits, value)
	if base := proxy[name]; ratio && base > 0 {
		text += fmt.Sprintf(" (×%.2g)", value/base)
	}
	return text
}

// save writes the report as <date>-<commit>.md and .json.
func (r *report) save(dir string) error {
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return saveResult(dir, r.Date+"-"+r.Commit, body, r.markdown())
}

// saveResult writes a result as <name>.json and <name>.md.
func saveResult(dir, name string, body []byte, text string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // to be read by everybody
		return err
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file+".json", append(body, '\n'), 0o644); err != nil { //nolint:gosec // the same
		return err
	}
	return os.WriteFile(file+".md", []byte(text), 0o644) //nolint:gosec // the same
}
