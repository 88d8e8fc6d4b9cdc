package snapshot

import (
	"context"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// noteSuperseded notes, for the run that begins at seq, which messages its input removed from the
// conversation before.
func (f *folder) noteSuperseded(seq uint64, before []Entry) {
	removed, first := removedMessages(before, f.snap.Entries)
	if len(removed) == 0 {
		return
	}
	note := &Superseded{Before: f.previousSeq, At: seq, Messages: len(removed)}
	if first > 0 {
		note.After = before[first-1].Message.ID
	}
	f.snap.Runs[len(f.snap.Runs)-1].Superseded = note // addRun has appended to a clipped list
}

// removedMessages returns the messages of a conversation that a later one lacks or has in another
// version, and the position of the first of them. Hidden messages do not count.
func removedMessages(before, after []Entry) (removed []agui.Message, first int) {
	shared := 0
	for shared < min(len(before), len(after)) && sameEntry(before[shared], after[shared]) {
		shared++
	}
	if shared == len(before) {
		return nil, shared
	}
	afterByID := make(map[string]Entry, len(after)-shared)
	for _, e := range after[shared:] {
		afterByID[e.Message.ID] = e
	}
	for i, e := range before[shared:] {
		shown, isShown := e.Shown()
		if kept, ok := afterByID[e.Message.ID]; !isShown || ok && sameEntry(e, kept) {
			continue
		}
		if removed == nil {
			first = shared + i
		}
		removed = append(removed, shown)
	}
	return removed, first
}

// sameEntry reports whether two entries are the same version of a message.
func sameEntry(a, b Entry) bool {
	return a.Message.ID == b.Message.ID && a.Sent == b.Sent && a.Message.Role == b.Message.Role
}

// SupersededBy returns the messages that the input of a run removed, in their order; note is that
// of its RunNote. For an old run it reads the thread from its first record.
func (s *Store) SupersededBy(ctx context.Context, t stream.Thread, note *Superseded) ([]agui.Message, error) {
	before, err := s.At(ctx, t, note.Before)
	if err != nil {
		return nil, err
	}
	after, err := s.At(ctx, t, note.At)
	if err != nil {
		return nil, err
	}
	removed, _ := removedMessages(before.Entries, after.Entries)
	return slices.Clip(removed), nil
}
