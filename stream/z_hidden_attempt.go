package stream

import (
	"cmp"
	"math"
	"slices"
)

// Unseen tells how much a reader was shown of attempts that died: of those whose deaths come up to the
// record Died, and behind that of the entry before, what they said up to Behind. Of those that no entry
// tells of it was shown all up to where it is. An entry whose record is that of the cursor tells that the
// reader is inside a withdrawal.
//
// What a reader was shown, and where it is, determine the entries; where it was cut on the way does not:
// an event has the same cursor for all who were shown the same. There are as few as will do. Behind is the
// last event that the reader was shown of any of these attempts, and zero if it was shown none.
type Unseen struct {
	Behind Position
	Died   uint64
}

// maxUnseen bounds how often a reader comes back before deaths that it knows: what is more is taken together.
const maxUnseen = 8

// withdrawn tells whether the place is inside a withdrawal, and a place in the run from which that is.
func (c Cursor) withdrawn() (before Position, inside bool) {
	if len(c.Unseen) == 0 || c.Unseen[0].Died != c.Seq {
		return Position{}, false
	}
	return c.Unseen[0].Behind, true
}

// hides tells whether an event is of an attempt that died and is not, or no more, shown to this reader.
func (p *Projection) hides(writer string, at Position) bool {
	died, dead := p.dead[writer]
	switch {
	case !dead:
		return false
	case p.joining || died < p.resume.Seq:
		return true
	}
	if i := slices.IndexFunc(p.unseen, func(u Unseen) bool { return died <= u.Died }); i >= 0 {
		return p.unseen[i].Behind.before(at)
	}
	return died == p.resume.Seq || p.resume.before(at) // who is at its death, and inside no withdrawal, was shown none of it
}

// outstanding is what cursors tell at the record that has been reached, behind the entry of a withdrawal that
// is shown there.
//
// An attempt needs an entry as soon as an event of it was hidden. So does one of which none was, if it dies
// before such a one, whose entry would be about both. Attempts share an entry as long as one place divides
// what was shown of each from what was not.
func (p *Projection) outstanding(withdrawal ...Unseen) []Unseen {
	unseen := withdrawal
	var until Position // before which the last entry's place must be; a withdrawal shares its entry with nobody
	for _, v := range p.dying() {
		if last := len(unseen) - 1; last >= 0 {
			behind, before := later(unseen[last].Behind, v.shown), earlier(until, v.until())
			if behind.before(before) {
				unseen[last], until = Unseen{Behind: behind, Died: v.died}, before
				continue
			}
			if len(unseen) == maxUnseen {
				unseen[last].Died = v.died
				continue
			}
		}
		unseen, until = append(unseen, Unseen{Behind: v.shown, Died: v.died}), v.until()
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
	for len(dying) > 0 && dying[len(dying)-1].hidden == (Position{}) {
		dying = dying[:len(dying)-1]
	}
	return dying
}

// hide notes that the reader is not shown an event.
func (v *laneView) hide(at Position) {
	if v.hidden == (Position{}) {
		v.hidden = at
	}
}

// until is where the reader must have been cut before, to have been shown what it was.
func (v *laneView) until() Position {
	if v.hidden == (Position{}) {
		return Position{Seq: math.MaxUint64}
	}
	return v.hidden
}

func later(p, q Position) Position {
	if p.before(q) {
		return q
	}
	return p
}

func earlier(p, q Position) Position {
	if p.before(q) {
		return p
	}
	return q
}
