package apinode

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/api/systemroutes"
	"github.com/perdure/perdure/internal/control/admission"
	"github.com/perdure/perdure/internal/workers/announce"
)

// TestModelCalls: the circuits of all workers and the pause of a model are one entry.
func TestModelCalls(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1000).UTC()
	circuit := func(model, state string) announce.Circuit {
		return announce.Circuit{Model: model, State: state, Since: at}
	}
	got := newModelCalls([]announce.Present{
		{Worker: announce.Worker{Name: "w1"}, Circuits: []announce.Circuit{circuit("b/m", "open")}},
		{Worker: announce.Worker{Name: "w2"}, Circuits: []announce.Circuit{circuit("a/m", "open"), circuit("b/m", "half-open")}},
	}, admission.State{
		Pauses: []admission.Pause{{Model: "b/m", Until: at}, {Model: "c/m", Until: at}}, Uses: []admission.Use{{Provider: "p", Calls: 2, Waiting: 1}},
	})
	want := systemroutes.ModelCalls{
		Models: []systemroutes.Model{
			{Model: "a/m", Circuits: []systemroutes.Circuit{{Worker: "w2", State: "open", Since: at}}},
			{Model: "b/m", Circuits: []systemroutes.Circuit{{Worker: "w1", State: "open", Since: at}, {Worker: "w2", State: "half-open", Since: at}}, PausedUntil: &at},
			{Model: "c/m", Circuits: []systemroutes.Circuit{}, PausedUntil: &at},
		},
		Providers: []systemroutes.Provider{{Provider: "p", Calls: 2, Waiting: 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("model calls (-want +got):\n%s", diff)
	}
}
