package apinode

import (
	"context"
	"slices"
	"strings"

	"github.com/perdure/perdure/api/systemroutes"
	"github.com/perdure/perdure/internal/control/admission"
	"github.com/perdure/perdure/internal/workers/announce"
)

// modelCalls returns the circuits that the workers announce, and what they share about models. If the
// log does not answer, that is missing; the check of the log tells why.
func (n *Node) modelCalls(ctx context.Context) systemroutes.ModelCalls {
	shared, _ := admission.Read(ctx, n.follower.Log())
	return newModelCalls(n.board.Workers(), shared)
}

// newModelCalls combines what workers announce with what they share. The models are sorted.
func newModelCalls(workers []announce.Present, shared admission.State) systemroutes.ModelCalls {
	calls := systemroutes.ModelCalls{Models: []systemroutes.Model{}, Providers: []systemroutes.Provider{}}
	model := func(name string) *systemroutes.Model {
		i, isKnown := slices.BinarySearchFunc(calls.Models, name, func(m systemroutes.Model, name string) int { return strings.Compare(m.Model, name) })
		if !isKnown {
			calls.Models = slices.Insert(calls.Models, i, systemroutes.Model{Model: name, Circuits: []systemroutes.Circuit{}})
		}
		return &calls.Models[i]
	}
	for _, w := range workers {
		for _, c := range w.Circuits {
			m := model(c.Model)
			m.Circuits = append(m.Circuits, systemroutes.Circuit{Worker: w.Name, State: c.State, Since: c.Since.UTC()})
		}
	}
	for _, p := range shared.Pauses {
		until := p.Until.UTC()
		model(p.Model).PausedUntil = &until
	}
	for _, u := range shared.Uses {
		calls.Providers = append(calls.Providers, systemroutes.Provider(u))
	}
	return calls
}
