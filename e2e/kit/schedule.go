package kit

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/runs"
)

// WantOneRunPerFiring checks that no time of a schedule fired twice and that each firing started
// one run.
func (p *Endpoint) WantOneRunPerFiring(t *testing.T) {
	t.Helper()
	c, err := p.DialTemporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := finishedExecutions(t.Context(), c, 0)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	fires, started := 0, 0
	for _, e := range all {
		times[e.GetExecution().GetWorkflowId()]++
		switch e.GetType().GetName() {
		case runs.TypeFiring:
			fires++
		case runs.TypeRun:
			started++
		}
	}
	for id, n := range times {
		if n != 1 && strings.HasPrefix(id, "fire/") {
			t.Errorf("number of firings of %s = %d, want 1", id, n)
		}
	}
	if fires == 0 || fires != started {
		t.Errorf("number of firings = %d, of their runs = %d, want the same", fires, started)
	}
}
