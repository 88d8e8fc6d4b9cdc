package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// TestMatrix injects every fault in every phase of a run. The run ends as it should, its stream is
// legal and has what the model and the tool recorded, and no finished step runs again. Without
// -chaos it leaves out the brief phases of faults that kill a process.
func TestMatrix(t *testing.T) {
	tb, m := setupTestbed(t), newMatrix()
	for _, f := range processFaults {
		t.Run(f.name, func(t *testing.T) { m.run(t, tb, f) })
	}
	t.Run("calm", func(t *testing.T) {
		for _, f := range runFaults {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				m.run(t, tb, f)
			})
		}
	})
	if *kit.Chaos && *kit.Update {
		if err := writeTable(m.table()); err != nil {
			t.Error(err)
		}
	}
}

// cell is the result of a fault in a phase.
type cell string

const (
	passed cell = "✓"
	failed cell = "✗"
	missed cell = "?" // no attempt hit the phase
)

// matrix collects the cells. It is safe for concurrent use.
type matrix struct {
	mu    sync.Mutex
	cells map[string]map[string]cell // by fault and phase
}

// newMatrix returns an empty matrix.
func newMatrix() *matrix { return &matrix{cells: map[string]map[string]cell{}} }

// set stores a cell.
func (m *matrix) set(f fault, ph phase, c cell) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cells[f.name] == nil {
		m.cells[f.name] = map[string]cell{}
	}
	if m.cells[f.name][ph.name] != failed { // a failure is final
		m.cells[f.name][ph.name] = c
	}
}

// hits and tries bound the attempts to hit a brief phase.
const hits, tries = 3, 12

// run injects a fault in all phases: at once in runs that can pause, and one by one in brief phases
// if the fault affects the whole process.
func (m *matrix) run(t *testing.T, tb *testbed, f fault) {
	if f.isSlow && !*kit.Chaos {
		t.Skip("this fault takes long; run it with make chaos")
	}
	var together, later, alone []phase
	for _, ph := range phases {
		switch {
		case f.excluded(ph) != "":
		case ph.leaves: // when this phase is reached, the other calls have left their tasks too
			later = append(later, ph)
		case ph.brief() && f.isolated:
			alone = append(alone, ph)
		default:
			together = append(together, ph)
		}
	}
	m.runPhases(t, tb, f, together...)
	if len(later) > 0 {
		m.runPhases(t, tb, f, later...)
	}
	if *kit.Chaos {
		for _, ph := range alone {
			m.runUntilHit(t, tb, f, ph)
		}
	}
}

// runUntilHit injects a fault in a brief phase until enough attempts have hit it, or too many have
// missed it.
func (m *matrix) runUntilHit(t *testing.T, tb *testbed, f fault, ph phase) {
	hit := 0
	for range tries {
		if m.runPhases(t, tb, f, ph) {
			hit++
		}
		if hit == hits || t.Failed() {
			return
		}
	}
	t.Logf("%s: %d of %d tries hit it", ph.name, hit, tries)
	if hit == 0 {
		m.set(f, ph, missed)
	}
}

// runPhases starts a run for each phase, injects the fault when each run is in its phase, and
// checks the runs. It reports whether all runs were in their phases.
func (m *matrix) runPhases(t *testing.T, tb *testbed, f fault, phases ...phase) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 2*kit.WaitTimeout)
	defer cancel()
	var runs []*observedRun
	for _, ph := range phases {
		a := newObservedRun(ctx, tb.PausableModel, ph, f.endpoint(tb))
		if f.prepare != nil {
			f.prepare(a)
		}
		runs = append(runs, a)
	}
	defer func() {
		for _, a := range runs {
			a.script.Release()
			a.reader.Cut()
		}
	}()
	var reach errgroup.Group
	for _, a := range runs {
		reach.Go(a.start)
	}
	if err := reach.Wait(); err != nil {
		t.Fatal(err)
	}
	f.inject(t, tb, runs)
	at := f.endpoint(tb)
	inPhase := make([]bool, len(runs))
	var checks errgroup.Group
	for i, a := range runs {
		checks.Go(func() error {
			var err error
			if inPhase[i], err = f.finish(ctx, a, at); err != nil {
				m.set(f, a.phase, failed)
				t.Errorf("%s: %v", a.phase.name, err)
				return nil
			}
			m.set(f, a.phase, passed)
			return nil
		})
	}
	_ = checks.Wait()
	return !slices.Contains(inPhase, false)
}

// finish lets a run continue to its end and checks it. hit reports whether the fault hit the run's
// phase.
func (f fault) finish(ctx context.Context, a *observedRun, at *kit.Endpoint) (hit bool, err error) {
	if err := a.finish(); err != nil {
		return false, err
	}
	err = errors.Join(a.check(ctx, at), f.checkCalls(a))
	if f.check != nil {
		err = errors.Join(err, f.check(a))
	}
	if !a.phase.brief() || !f.isolated {
		return true, err
	}
	records, e := at.Records(ctx, a.reader.In)
	if e != nil {
		return false, errors.Join(err, fmt.Errorf("records: %w", e))
	}
	return a.wasInPhase(records), err
}
