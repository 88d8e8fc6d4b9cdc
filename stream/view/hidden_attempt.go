package view

import (
	"cmp"
	"slices"

	"github.com/perdure/perdure/stream"
)

// This file decides which events of superseded attempts a reader is shown, and what its cursors
// tell of them (stream.ShownPart). A reader that attaches after an attempt was superseded is not
// shown the rest of it; one that was shown a part gets a retraction of that part. When the reader
// reconnects, the cursor is all that the server knows of the shown part.

// isHidden reports whether an event of an attempt is hidden from this reader, because the attempt
// is known to be superseded. at is the event's position, writer the attempt.
func (p *Projection) isHidden(writer string, position stream.Position) bool {
	end, superseded := p.superseded[writer]
	switch {
	case !superseded:
		return false
	case p.joining || end < p.resumeAfter.Seq: // the retraction, if any, was shown before the cursor
		return true
	}
	if i := slices.IndexFunc(p.shownParts, func(u stream.ShownPart) bool { return end <= u.SupersededAt }); i >= 0 {
		return p.shownParts[i].Shown.Before(position)
	}
	// A reader at the record that superseded the attempt, outside a retraction, was shown nothing
	// of it.
	return end == p.resumeAfter.Seq || p.resumeAfter.Before(position)
}

// shownPartEntries returns Cursor.ShownParts for the current record. retraction is the entry of a
// retraction that is shown at this record; it comes first.
//
// An attempt needs an entry as soon as one of its events is hidden. An attempt without a hidden
// event needs one if it is superseded before such an attempt, because an entry is about all
// attempts up to its record. Attempts share an entry as long as one position divides, for each of
// them, the shown events from the hidden ones. Beyond stream.MaxShownParts the last entry is
// extended, and is not exact.
func (p *Projection) shownPartEntries(retraction ...stream.ShownPart) []stream.ShownPart {
	shownParts := retraction
	var hiddenBound stream.Position // bound of the last entry's Shown; zero after a retraction, whose entry no attempt shares
	for _, v := range p.pendingSupersessions() {
		if last := len(shownParts) - 1; last >= 0 {
			shown, bound := later(shownParts[last].Shown, v.shown), earlier(hiddenBound, v.hiddenFrom())
			if shown.Before(bound) {
				shownParts[last], hiddenBound = stream.ShownPart{Shown: shown, SupersededAt: v.supersededAt}, bound
				continue
			}
			if len(shownParts) == stream.MaxShownParts {
				shownParts[last].SupersededAt = v.supersededAt
				continue
			}
		}
		shownParts, hiddenBound = append(shownParts, stream.ShownPart{Shown: v.shown, SupersededAt: v.supersededAt}), v.hiddenFrom()
	}
	return shownParts
}

// pendingSupersessions returns the open attempts that are superseded after the current record, the
// earliest first, up to the last one with a hidden event. Further ones are left out, because which
// of them are known depends on when the reader attached, and a cursor must not depend on that.
func (p *Projection) pendingSupersessions() []*laneView {
	var pending []*laneView
	for _, v := range p.lanes {
		if v.supersededAt > p.record {
			pending = append(pending, v)
		}
	}
	slices.SortFunc(pending, func(v, w *laneView) int { return cmp.Compare(v.supersededAt, w.supersededAt) })
	for len(pending) > 0 && pending[len(pending)-1].hidden == (stream.Position{}) {
		pending = pending[:len(pending)-1]
	}
	return pending
}

// later returns the later of two positions.
func later(p, q stream.Position) stream.Position {
	if p.Before(q) {
		return q
	}
	return p
}

// earlier returns the earlier of two positions.
func earlier(p, q stream.Position) stream.Position {
	if p.Before(q) {
		return p
	}
	return q
}
