package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// runWithTexts writes a run of a thread that emits some words and ends.
func (n *node) runWithTexts(thread, run string, words int) {
	n.t.Helper()
	n.temporal.start = func(in runs.Input) error {
		p := n.begin(in, "e-"+thread+run)
		a, _, err := n.log.Begin(n.ctx(), p)
		if err != nil {
			return err
		}
		defer a.Close()
		m := agui.Message{ID: "m-" + thread + run, Role: agui.RoleAssistant}
		text, record := "", []agui.Event{&agui.TextMessageStart{MessageID: m.ID}}
		for i := range words {
			word := fmt.Sprintf("%s %d ", run, i)
			text += word
			if record = append(record, &agui.TextMessageContent{MessageID: m.ID, Delta: word}); len(record) < 3 {
				continue // several events are one record
			}
			if err := a.Emit(n.ctx(), record...); err != nil {
				return err
			}
			record = nil
		}
		m.Content = agui.TextContent(text)
		if p.After, err = a.Finish(n.ctx(), &stream.Result{Messages: []agui.Message{m}}, append(record, &agui.TextMessageEnd{MessageID: m.ID})...); err != nil {
			return err
		}
		n.end(p)
		return nil
	}
	in := inputOf(run, "hello")
	in.ThreadID, in.Messages[0].ID = thread, "u-"+thread+run
	if a := n.post(in); a.status != http.StatusOK {
		n.t.Fatalf("status = %v, want %v; body: %s", a.status, http.StatusOK, a.body)
	}
}

// Lengths of the position at the start of a cursor, and of the record's sequence in it. Texts of
// positions sort in the order of the log.
const (
	positionDigits = 17
	recordDigits   = 12
)

// positionText returns the position of a frame, as text.
func positionText(frame string) string { return cursors(frame)[0][:positionDigits] }

// mutate changes a cursor in a random way.
func mutate(r *rand.Rand, own, foreign []string) string {
	pick := func(of []string) string { return of[r.IntN(len(of))] }
	cursor := pick(own)
	at := func() int { return r.IntN(len(cursor)) }
	tail := func() string { return cursor[positionDigits:] }
	const letters = "0123456789abcdef-fhzZ %\x7f"
	switch r.IntN(11) {
	case 0:
		return cursor
	case 1: // truncated
		return cursor[:at()]
	case 2:
		return cursor[at():]
	case 3: // with another letter
		i := at()
		return cursor[:i] + string(letters[r.IntN(len(letters))]) + cursor[i+1:]
	case 4: // with an additional letter
		i := at()
		return cursor[:i] + string(letters[r.IntN(len(letters))]) + cursor[i:]
	case 5: // of another thread
		return pick(foreign)
	case 6: // at a position of another thread, or of a run's proposal
		return pick(foreign)[:positionDigits] + tail()
	case 7: // at a near position
		var seq, index uint64
		_, _ = fmt.Sscanf(cursor[:positionDigits], "%12x%5x", &seq, &index)
		return fmt.Sprintf("%012x%05x", max(0, int64(seq)+r.Int64N(7)-3), r.IntN(4)) + tail()
	case 8: // at any position
		return fmt.Sprintf("%012x%05x", r.Uint64N(1<<(4+r.IntN(44))), r.IntN(1<<20)) + tail()
	case 9: // of another epoch
		return cursor[:len(cursor)-3] + fmt.Sprintf("%03d", r.IntN(1000))
	default: // with unseen positions
		return cursor + "-" + pick(append(foreign, own...))[:positionDigits] + fmt.Sprintf("%012x", r.Uint64N(1<<20))
	}
}

// TestRandomCursors: for any cursor a thread's stream answers 400 or 410, or continues with the
// next event of the thread.
func TestRandomCursors(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.closed = func(string) {}
	early := map[string]*frameReader{"t": node.watch("/v1/threads/t/events"), "o": node.watch("/v1/threads/o/events")}
	all := map[string][]string{} // the frames of each thread
	for i := range 5 {
		for _, thread := range []string{"t", "o"} {
			run := fmt.Sprintf("r%d", i)
			node.runWithTexts(thread, run, 4)
			all[thread] = append(all[thread], frames(strings.TrimLeft(early[thread].until("RUN_FINISHED"), "\n")+"\n")...)
		}
	}
	ids := func(thread string) (list []string) {
		for _, frame := range all[thread] {
			list = append(list, cursors(frame)[0])
		}
		return list
	}
	own, foreign := ids("t"), ids("o")
	if len(own) < 30 {
		t.Fatalf("cursors: got %d, want at least 30", len(own))
	}
	last := own[len(own)-1][:recordDigits]
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	outcomes, compared := map[string]int{}, 0
	for range 2000 {
		cursor := mutate(r, own, foreign)
		if cursor == "" {
			continue // no cursor at all
		}
		query := "/v1/threads/t/events?follow=false&after=" + url.QueryEscape(cursor)
		a := node.do(http.MethodGet, query, "")
		outcomes[fmt.Sprintf("%d %s", a.status, a.problem.Code)]++
		switch a.status {
		case http.StatusBadRequest, http.StatusGone:
			wantEqual(t, fmt.Sprintf("seed %d: cursor is one of the log's own", seed), slices.Contains(own, cursor), false)
			continue
		case http.StatusOK, http.StatusNoContent:
		default:
			t.Errorf("seed %d: cursor %q: got %d %s, want 200, 204, 400 or 410", seed, cursor, a.status, a.body)
			continue
		}
		c, err := node.log.ParseCursor(cursor)
		if err != nil {
			t.Errorf("seed %d: invalid cursor %q is accepted: %v", seed, cursor, err)
			continue
		}
		if cursor[:recordDigits] > last {
			t.Errorf("seed %d: position of the cursor = %v, want at most %v", seed, cursor[:recordDigits], last)
		}
		if c.Generation != stream.Generation1 || !c.Spectator || c.Heal || len(c.ShownParts) > 0 {
			continue // the reader of that cursor is shown other events
		}
		compared++
		var want []string
		for _, frame := range all["t"] {
			if positionText(frame) > cursor[:positionDigits] {
				want = append(want, frame)
			}
		}
		got := frames(a.body)
		for i := range got {
			got[i] = strings.TrimSpace(got[i])
		}
		for i := range want {
			want[i] = strings.TrimSpace(want[i])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d: after %q (-want +got): %.1000s", seed, cursor, diff)
		}
	}
	if compared < 100 {
		t.Errorf("compared answers: got %d, want at least 100", compared)
	}
	for _, seldom := range []string{"200 ", "400 invalid_cursor", "410 log_replaced"} {
		if outcomes[seldom] == 0 {
			t.Errorf("number of answers %s = %v, want at least 1", seldom, outcomes[seldom])
		}
	}
}
