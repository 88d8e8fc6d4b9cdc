package main

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
)

func TestAmounts(t *testing.T) {
	t.Parallel()
	got, err := parseAmounts("scales", "crowd=70,streams", scaleAmounts(true), true)
	if diff := cmp.Diff(map[string]int{"crowd": 70, "streams": 100}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"crowds", "crowd=0", "crowd=many"} {
		if _, err := parseAmounts("scales", text, scaleAmounts(true), false); err == nil {
			t.Errorf("amounts %q: got no error, want one", text)
		}
	}
}

func TestStepsOfPipelinesAreBounded(t *testing.T) {
	t.Parallel()
	p, err := parsePlan([]string{"-pipelines", "steps=490,map"}, io.Discard)
	if err != nil || p.Pipelines["steps"] != maxSteps || p.Pipelines["map"] != 500 {
		t.Fatalf("plan = %+v, %v, want the largest amounts", p, err)
	}
	for name, text := range p.definitions() {
		if _, err := agents.Parse(name+".yaml", []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parsePlan([]string{"-pipelines", "steps=491"}, io.Discard); err == nil {
		t.Error("plan with too many steps: got no error, want one")
	}
}
