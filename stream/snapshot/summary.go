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

// maxSummaries bounds those that a thread knows. An agent needs its newest only; steps and subagents have others.
const maxSummaries = 32

// Summarize returns the note about a summary of some entries, in their order.
func Summarize(entries []Entry) *stream.Summary {
	return &stream.Summary{Messages: len(entries), Digest: digestEntries(entries)}
}

// Covers tells whether it is a summary of the first of these entries, as they are. If they were cut, or another
// one has come between them, it is not.
func Covers(s stream.Summary, entries []Entry) bool {
	return s.Messages > 0 && s.Messages <= len(entries) && digestEntries(entries[:s.Messages]) == s.Digest
}

// digestEntries tells entries apart by their ids. What only an agent is asked has one that depends on who asks for
// it, so its text counts; what a client sent may have come again with other words.
func digestEntries(entries []Entry) string {
	h := sha256.New()
	for _, e := range entries {
		known := e.Message.ID + "\x00" + e.Sent
		if e.Message.Role == agui.RoleUser && e.Sent == "" {
			known = "\x00" + e.Message.Content.Text()
		}
		_, _ = fmt.Fprintf(h, "%d ", len(known))
		_, _ = io.WriteString(h, known) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// summarize notes a summary.
func (f *fold) summarize(seq uint64, s stream.Summary) {
	s.Seq = seq
	kept := f.r.Summaries[max(0, len(f.r.Summaries)+1-maxSummaries):]
	f.r.Summaries = append(slices.Clip(kept), s)
}
