package main

import (
	"io"
	"strings"
	"testing"
)

func TestDefaultsOfPlans(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args        string
		repetitions int
		systems     string
		large       bool // whether the large scales are measured
		results     string
	}{
		{"", 3, "direct,proxy,copilotkit,dev,apart", true, "results"},
		{"-quick", 1, "direct,proxy,copilotkit,dev,apart", false, ""},
		{"-base HEAD", 6, "dev,apart", false, "results"},
		{"-base HEAD -quick", 6, "dev,apart", false, ""},
		{"-base HEAD -systems proxy,dev -scales crowd -repetitions 8", 8, "proxy,dev", true, "results"},
	} {
		p, err := parsePlan(strings.Fields(test.args), io.Discard)
		if err != nil {
			t.Fatalf("%s: %v", test.args, err)
		}
		if got := strings.Join(p.Systems, ","); got != test.systems || p.Repetitions != test.repetitions || p.results != test.results {
			t.Errorf("%q: %d × %s to %q, want %d × %s to %q", test.args, p.Repetitions, got, p.results, test.repetitions, test.systems, test.results)
		}
		if got := p.Scales["crowd"] > 0; got != test.large {
			t.Errorf("%q measures large scales: %v, want %v", test.args, got, test.large)
		}
	}
}

func TestRefusedPlans(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"-systems proxies", "-repetitions -1", "-base HEAD -repetitions 7", "-base HEAD -repetitions 4", "-base HEAD -profile p",
	} {
		if _, err := parsePlan(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s: got no error, want one", args)
		}
	}
}

func TestPlanStartsTheSystemsOfItsScales(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-systems= -pipelines= -scales=memory":       "dev",
		"-systems= -pipelines= -scales=kills":        "apart",
		"-systems=proxy -pipelines=steps -scales=":   "apart,proxy",
		"-systems=dev -pipelines= -scales=approvals": "dev",
	} {
		p, err := parsePlan(strings.Fields(args), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.started(), ","); got != want {
			t.Errorf("%s starts %s, want %s", args, got, want)
		}
	}
}
