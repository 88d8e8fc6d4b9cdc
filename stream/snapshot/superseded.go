package snapshot

import (
	"context"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// supersede notes which messages an input removed.
func (f *fold) supersede(seq uint64, before []Entry) {
	gone, first := supersededOf(before, f.r.Entries)
	if len(gone) == 0 {
		return
	}
	note := &Superseded{Before: f.last, At: seq, Messages: len(gone)}
	if first > 0 {
		note.After = before[first-1].Message.ID
	}
	f.r.Runs[len(f.r.Runs)-1].Superseded = note // began has cloned the list
}

// supersededOf lists the messages that a later conversation lacks or has in another version, and
// the position of the first of them.
func supersededOf(before, after []Entry) (gone []agui.Message, first int) {
	shared := 0
	for shared < min(len(before), len(after)) && sameEntry(before[shared], after[shared]) {
		shared++
	}
	if shared == len(before) {
		return nil, shared
	}
	now := make(map[string]Entry, len(after)-shared)
	for _, e := range after[shared:] {
		now[e.Message.ID] = e
	}
	for i, e := range before[shared:] {
		if kept, ok := now[e.Message.ID]; e.Hidden() || ok && sameEntry(e, kept) {
			continue
		}
		if gone == nil {
			first = shared + i
		}
		gone = append(gone, e.Message)
	}
	return gone, first
}

func sameEntry(a, b Entry) bool {
	return a.Message.ID == b.Message.ID && a.Sent == b.Sent && a.Message.Role == b.Message.Role
}

// SupersededBy returns the messages that the input of a run removed, in their order. For an old run
// it reads the thread from its first record.
func (s *Store) SupersededBy(ctx context.Context, t stream.Thread, note *Superseded) ([]agui.Message, error) {
	before, err := s.At(ctx, t, note.Before)
	if err != nil {
		return nil, err
	}
	after, err := s.At(ctx, t, note.At)
	if err != nil {
		return nil, err
	}
	gone, _ := supersededOf(before.Entries, after.Entries)
	return slices.Clip(gone), nil
}
