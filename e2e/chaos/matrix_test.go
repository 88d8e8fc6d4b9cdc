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

// Every fault in every phase of a run: the run ends as it should, its stream is legal and tells
// what the model's and the tool's own journal say, and nothing that was done is done again. Without
// -chaos the phases that last only milliseconds are left out where a process must be killed for
// each.
func TestMatrix(t *testing.T) {
	th, m := setupTestbed(t), newMatrix()
	for _, f := range violent {
		t.Run(f.name, func(t *testing.T) { m.play(t, th, f) })
	}
	t.Run("calm", func(t *testing.T) {
		for _, f := range calm {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				m.play(t, th, f)
			})
		}
	})
	if *kit.Chaos && *kit.Update {
		if err := writeTable(m.table()); err != nil {
			t.Error(err)
		}
	}
}

// cell is what became of a fault in a phase.
type cell string

const (
	held   cell = "✓"
	broken cell = "✗"
	missed cell = "?" // the phase was over each time
)

// matrix collects the cells. It is safe for concurrent use.
type matrix struct {
	mu    sync.Mutex
	cells map[string]map[string]cell // by fault and phase
}

func newMatrix() *matrix { return &matrix{cells: map[string]map[string]cell{}} }

func (m *matrix) set(f fault, ph phase, c cell) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cells[f.name] == nil {
		m.cells[f.name] = map[string]cell{}
	}
	if m.cells[f.name][ph.name] != broken { // once broken is broken
		m.cells[f.name][ph.name] = c
	}
}

// A phase of milliseconds is aimed at until it was hit so often, or tried so often.
const hits, tries = 3, 12

// play has a fault happen in all phases: at once to runs that can be made to stand still, and each
// by itself to the others, if it is one that strikes everybody.
func (m *matrix) play(t *testing.T, th *testbed, f fault) {
	if f.lasts && !*kit.Chaos {
		t.Skip("it takes long; make chaos has it")
	}
	var together, alone []phase
	for _, ph := range phases {
		switch {
		case f.cannot(ph) != "":
		case ph.brief() && f.alone:
			alone = append(alone, ph)
		default:
			together = append(together, ph)
		}
	}
	m.act(t, th, f, together...)
	if *kit.Chaos {
		for _, ph := range alone {
			m.aim(t, th, f, ph)
		}
	}
}

// aim has a fault happen in a brief phase until it was hit often enough, or missed too often.
func (m *matrix) aim(t *testing.T, th *testbed, f fault, ph phase) {
	hit := 0
	for range tries {
		if m.act(t, th, f, ph) {
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

// act begins a run for each phase, strikes when each is in its phase, and judges. It tells whether
// the phases were hit.
func (m *matrix) act(t *testing.T, th *testbed, f fault, phases ...phase) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 2*kit.Patience)
	defer cancel()
	var actors []*observedRun
	for _, ph := range phases {
		a := enter(ctx, th.PausableModel, ph, f.where(th))
		if f.prepare != nil {
			f.prepare(a)
		}
		actors = append(actors, a)
	}
	defer func() {
		for _, a := range actors {
			a.play.GoOn()
			a.reader.Cut()
		}
	}()
	var reach errgroup.Group
	for _, a := range actors {
		reach.Go(a.reach)
	}
	if err := reach.Wait(); err != nil {
		t.Fatal(err)
	}
	f.strike(t, th, actors)
	at := f.where(th)
	inPhase := make([]bool, len(actors))
	var judge errgroup.Group
	for i, a := range actors {
		judge.Go(func() error {
			var err error
			if inPhase[i], err = f.judge(ctx, a, at); err != nil {
				m.set(f, a.phase, broken)
				t.Errorf("%s: %v", a.phase.name, err)
				return nil
			}
			m.set(f, a.phase, held)
			return nil
		})
	}
	_ = judge.Wait()
	return !slices.Contains(inPhase, false)
}

// judge lets a run come to its end and judges it. hit tells whether it was struck in its phase.
func (f fault) judge(ctx context.Context, a *observedRun, at *kit.Endpoint) (hit bool, err error) {
	if err := a.finish(); err != nil {
		return false, err
	}
	err = errors.Join(a.verdict(ctx, at), f.counted(a))
	if f.check != nil {
		err = errors.Join(err, f.check(a))
	}
	if !a.phase.brief() || !f.alone {
		return true, err
	}
	records, e := at.Records(ctx, a.reader.In)
	if e != nil {
		return false, errors.Join(err, fmt.Errorf("records: %w", e))
	}
	return a.hit(records), err
}
