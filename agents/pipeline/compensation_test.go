package pipeline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents/pipeline"
)

// TestBranchesAreCompensated: a step that failed in part, with onError: continue, without
// an output, or with an error in its output, is compensated in branches as outside of them.
func TestBranchesAreCompensated(t *testing.T) {
	t.Parallel()
	const order = `
- name: group
  compensate: {tool: undo, args: {of: group}}
  steps: [{name: first, tool: t, compensate: {tool: undo, args: {of: first}}}, {name: second, tool: t, compensate: {tool: undo, args: {of: second}}}]
- name: half
  onError: continue
  compensate: {tool: undo, args: {of: half}}
  steps: [{name: hold, tool: t, compensate: {tool: undo, args: {of: hold}}}, {name: lost, tool: t, compensate: {tool: undo, args: {of: lost}}}]
- name: mended
  tool: t
  compensate: {tool: undo, args: {of: mended}}
  onError: {steps: [{name: mend, tool: t, compensate: {tool: undo, args: {of: mend}}}]}
- {name: silent, compensate: {tool: undo, args: {of: silent}}, steps: [{name: note, set: {/note: 1}}]}
- name: way
  onError: {steps: [{name: home, tool: t, compensate: {tool: undo, args: {of: home}}}]}
  route: [{steps: [{name: out, tool: t, compensate: {tool: undo, args: {of: out}}}, {name: stuck, tool: t}]}]
- {name: said, tool: t, compensate: {tool: undo, args: {of: "${steps.said.of}"}}}
`
	answer := func(a pipeline.Action, _ int) pipeline.Event {
		switch name := a.Path[strings.LastIndexByte(a.Path, '/')+1:]; name {
		case "lost", "mended", "stuck", "last":
			return failedEvent(name)
		case "said":
			return doneEvent(`{"of":"said","error":null}`)
		}
		return doneEvent(`1`)
	}
	undone := func(steps string) (all []string) {
		f := setup(t, steps+"\n  - {name: last, tool: t}\n")
		f.eventOf = answer
		if failure := f.run(); failure == nil || failure.Code != "last" || strings.Contains(failure.Message, "compensate") {
			t.Errorf("failure = %+v, want last without a failed compensation", failure)
		}
		for _, did := range f.executedActions {
			if _, what, ok := strings.Cut(did, "~undo undo"); ok {
				all = append(all, what)
			}
		}
		return all
	}
	indented := func(by string) string { return strings.ReplaceAll(order, "\n", "\n"+by) }
	want := []string{
		`{"of":"said"}`, `{"of":"home"}`, `{"of":"out"}`, `{"of":"silent"}`, `{"of":"mend"}`, `{"of":"hold"}`,
		`{"of":"group"}`, `{"of":"second"}`, `{"of":"first"}`,
	}
	for where, steps := range map[string]string{
		"outside":    "steps:" + indented("  "),
		"map":        "steps:\n  - name: all\n    map:\n      items: \"['a']\"\n      steps:" + indented("        "),
		"parallel":   "steps:\n  - name: all\n    parallel:\n      - name: one\n        steps:" + indented("          "),
		"loop's map": "steps:\n  - name: rounds\n    loop:\n      max: 1\n      steps:\n        - name: all\n          map:\n            items: \"['a']\"\n            steps:" + indented("              "),
	} {
		if diff := cmp.Diff(want, undone(steps)); diff != "" {
			t.Errorf("%s: undone (-want +got):\n%s", where, diff)
		}
	}
}
