package view

import (
	"cmp"
	"slices"

	"github.com/perdure/perdure/stream"
)

// hides reports whether an event of a superseded attempt is hidden from this reader.
func (p *Projection) hides(writer string, at stream.Position) bool {
	end, superseded := p.superseded[writer]
	switch {
	case !superseded:
		return false
	case p.joining || end < p.resume.Seq:
		return true
	}
	if i := slices.IndexFunc(p.unseen, func(u stream.Unseen) bool { return end <= u.SupersededAt }); i >= 0 {
		return p.unseen[i].Shown.Before(at)
	}
	// A reader at the record that superseded the attempt, outside a retraction, was shown nothing
	// of it.
	return end == p.resume.Seq || p.resume.Before(at)
}

// outstanding returns what cursors say of hidden events, at the current record, after the entry of
// a retraction that is shown there.
//
// An attempt needs an entry as soon as one of its events is hidden. So does an attempt of which
// none is, if it is superseded before such a one, because that entry would be about both. Attempts
// share an entry as long as one position divides, for each of them, the shown events from the
// hidden ones.
func (p *Projection) outstanding(retraction ...stream.Unseen) []stream.Unseen {
	unseen := retraction
	var until stream.Position // the last entry's position must be before it; a retraction shares its entry with no attempt
	for _, v := range p.pendingSupersessions() {
		if last := len(unseen) - 1; last >= 0 {
			behind, before := later(unseen[last].Shown, v.shown), earlier(until, v.hiddenFrom())
			if behind.Before(before) {
				unseen[last], until = stream.Unseen{Shown: behind, SupersededAt: v.supersededAt}, before
				continue
			}
			if len(unseen) == stream.MaxUnseen {
				unseen[last].SupersededAt = v.supersededAt
				continue
			}
		}
		unseen, until = append(unseen, stream.Unseen{Shown: v.shown, SupersededAt: v.supersededAt}), v.hiddenFrom()
	}
	return unseen
}

// pendingSupersessions returns the lanes whose attempts are superseded after the current record,
// the earliest first, up to the last one with a hidden event: which later ones are known depends on
// when the reader came.
func (p *Projection) pendingSupersessions() []*laneView {
	var dying []*laneView
	for _, v := range p.lanes {
		if v.supersededAt > p.record {
			dying = append(dying, v)
		}
	}
	slices.SortFunc(dying, func(v, w *laneView) int { return cmp.Compare(v.supersededAt, w.supersededAt) })
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
