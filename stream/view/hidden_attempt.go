package view

import (
	"cmp"
	"slices"

	"github.com/perdure/perdure/stream"
)

// hides tells whether an event is of an attempt that died and is not, or no more, shown to this reader.
func (p *Projection) hides(writer string, at stream.Position) bool {
	died, dead := p.dead[writer]
	switch {
	case !dead:
		return false
	case p.joining || died < p.resume.Seq:
		return true
	}
	if i := slices.IndexFunc(p.unseen, func(u stream.Unseen) bool { return died <= u.Died }); i >= 0 {
		return p.unseen[i].Behind.Before(at)
	}
	return died == p.resume.Seq || p.resume.Before(at) // who is at its death, and inside no withdrawal, was shown none of it
}

// outstanding is what cursors tell at the record that has been reached, behind the entry of a withdrawal that
// is shown there.
//
// An attempt needs an entry as soon as an event of it was hidden. So does one of which none was, if it dies
// before such a one, whose entry would be about both. Attempts share an entry as long as one place divides
// what was shown of each from what was not.
func (p *Projection) outstanding(withdrawal ...stream.Unseen) []stream.Unseen {
	unseen := withdrawal
	var until stream.Position // before which the last entry's place must be; a withdrawal shares its entry with nobody
	for _, v := range p.dying() {
		if last := len(unseen) - 1; last >= 0 {
			behind, before := later(unseen[last].Behind, v.shown), earlier(until, v.until())
			if behind.Before(before) {
				unseen[last], until = stream.Unseen{Behind: behind, Died: v.died}, before
				continue
			}
			if len(unseen) == stream.MaxUnseen {
				unseen[last].Died = v.died
				continue
			}
		}
		unseen, until = append(unseen, stream.Unseen{Behind: v.shown, Died: v.died}), v.until()
	}
	return unseen
}

// dying are the attempts whose deaths are still to come, the earliest first, up to the last of which something
// was hidden: which deaths are known behind that depends on when the reader came.
func (p *Projection) dying() []*laneView {
	var dying []*laneView
	for _, v := range p.lanes {
		if v.died > p.record {
			dying = append(dying, v)
		}
	}
	slices.SortFunc(dying, func(v, w *laneView) int { return cmp.Compare(v.died, w.died) })
	for len(dying) > 0 && dying[len(dying)-1].hidden == (stream.Position{}) {
		dying = dying[:len(dying)-1]
	}
	return dying
}

func later(p, q stream.Position) stream.Position {
	if p.Before(q) {
		return q
	}
	return p
}

func earlier(p, q stream.Position) stream.Position {
	if p.Before(q) {
		return p
	}
	return q
}
