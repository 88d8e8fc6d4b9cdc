package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reportOf returns a report with one row of each kind.
func reportOf(first, step, idle float64) *report {
	return &report{
		Repetitions: map[string][]measures{"dev": {{firstP50: first}}},
		Pipelines:   map[string][]versus{"steps": {{What: "a step", Unit: "ms", Perdure: step, Plain: 1}}},
		Scales:      map[string][]finding{"memory": {{"dev, RSS, idle", idle, "MiB"}}},
	}
}

func TestPairingShowsWhatIsBeyondNoise(t *testing.T) {
	t.Parallel()
	p := &pairing{Commit: "head", Base: "base", Plan: &plan{Repetitions: minRounds}}
	for i := range minRounds {
		drift := float64(i)
		p.add(reportOf(10+drift, 20+drift, 200).rows(), true)
		head := reportOf(5+drift/10, 21+drift, 400)
		head.Scales["kills"] = []finding{{"kill to next token, p50", 900, "ms"}}
		p.add(head.rows(), false)
	}
	p.judge()
	text := p.markdown()
	for _, want := range []string{
		"| | base | head | | beyond noise |",
		"| perdure dev: first token, p50, ms | 12.50 | 5.25 | ×0.42 | lower |",
		"| steps: a step | 22.50 ms | 23.50 ms | ×1.04 |  |",
		"| memory: dev, RSS, idle | 200 MiB | 400 MiB | ×2.00 | higher |",
		"| kills: kill to next token, p50 | – | 900 ms | – |  |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in:\n%s", want, text)
		}
	}
}

func TestBuildsTakeTurns(t *testing.T) {
	t.Parallel()
	var order strings.Builder
	for round := range 4 {
		for _, isBase := range turns(round) {
			order.WriteString(map[bool]string{true: "A", false: "B"}[isBase])
		}
	}
	if got := order.String(); got != "ABBAABBA" {
		t.Errorf("order = %s, want ABBAABBA", got)
	}
}

func TestPairingIsStoredWithBothCommits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := &pairing{Date: "2026-11-26", Commit: "head", Base: "base", Plan: &plan{Repetitions: minRounds}}
	p.add(reportOf(10, 20, 200).rows(), true)
	if err := p.save(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "2026-11-26-head-against-base.md"))
	if err != nil || string(text) != p.markdown() {
		t.Errorf("Markdown = %q, %v; want the report", text, err)
	}
	body, err := os.ReadFile(filepath.Join(dir, "2026-11-26-head-against-base.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got pairing
	if err := json.Unmarshal(body, &got); err != nil || len(got.Rows) != 3 || got.Rows[0].Base[0] != 10 {
		t.Errorf("JSON = %s, %v; want three rows with their values", body, err)
	}
}
