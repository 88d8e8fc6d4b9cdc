package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// maxSummaries bounds the summaries that a snapshot knows. An agent needs its newest only; steps
// and subagents have others.
const maxSummaries = 32

// Summarize returns the note of a summary that replaces these entries for models.
func Summarize(entries []Entry) *stream.Summary {
	return &stream.Summary{Messages: len(entries), Digest: digestEntries(entries)}
}

// Covers reports whether a summary is one of the first of these entries. It is false if some of the
// summarized entries were cut, or if another one was inserted between them.
func Covers(s stream.Summary, entries []Entry) bool {
	return s.Messages > 0 && s.Messages <= len(entries) && digestEntries(entries[:s.Messages]) == s.Digest
}

// digestEntries identifies entries by their IDs and, for messages of clients, their digests. A user
// message that a step adds for its agent only has an ID that differs between steps, so its text is
// used.
func digestEntries(entries []Entry) string {
	h := sha256.New()
	for _, e := range entries {
		identity := e.Message.ID + "\x00" + e.Sent
		if e.Message.Role == agui.RoleUser && e.Sent == "" {
			identity = "\x00" + e.Message.Content.Text()
		}
		_, _ = fmt.Fprintf(h, "%d ", len(identity))
		_, _ = io.WriteString(h, identity) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// addSummary adds a summary, which the record with a sequence keeps. Beyond maxSummaries the oldest
// is dropped.
func (f *folder) addSummary(seq uint64, s stream.Summary) {
	s.Seq = seq
	kept := f.snap.Summaries[max(0, len(f.snap.Summaries)+1-maxSummaries):]
	f.snap.Summaries = append(slices.Clip(kept), s)
}
