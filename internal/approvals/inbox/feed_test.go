package inbox_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/stream"
)

// record adds an event of the n-th approval.
func record(t *testing.T, s *inbox.Store, of string, what inbox.EventType, n int) {
	t.Helper()
	if err := s.Record(t.Context(), of, fmt.Sprintf("evt_%s_%d", what, n), &inbox.Event{Type: what, At: began, Approval: *approval(n)}); err != nil {
		t.Fatal(err)
	}
}

// follow opens a feed after a cursor.
func follow(t *testing.T, s *inbox.Store, of string, after *inbox.Cursor) *inbox.Feed {
	t.Helper()
	f, err := s.Follow(t.Context(), of, after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// read reads n events and returns their content and cursors.
func read(t *testing.T, f *inbox.Feed, n int) (said []string, cursors []inbox.Cursor) {
	t.Helper()
	for range n {
		m, err := f.Next(t.Context(), 20*time.Second)
		if err != nil || m == nil {
			t.Fatalf("event after cursor %v: got %v, %v, want one", said, m, err)
		}
		said, cursors = append(said, string(m.Event.Type)+" "+m.Event.Approval.ID), append(cursors, m.Cursor)
	}
	return said, cursors
}

// TestListIsAsNewAsEvent: after AwaitEvent the list has what the event tells: an opened interrupt
// is listed, and a settled one is not.
func TestListIsAsNewAsEvent(t *testing.T) {
	t.Parallel()
	s, x := open(t)
	feed := follow(t, s, tenant, nil)
	next := func(n int, isOpen bool) {
		t.Helper()
		m, err := feed.Next(t.Context(), 20*time.Second)
		if err != nil || m == nil {
			t.Fatalf("event of approval %d: got %v, %v, want one", n, m, err)
		}
		if err := x.AwaitEvent(t.Context(), tenant, m); err != nil {
			t.Fatal(err)
		}
		if isListed := slices.Contains(list(t, x, inbox.Filter{}), approval(n).ID); isListed != isOpen {
			t.Errorf("list after %s of approval %d: has it = %v, want %v", m.Event.Type, n, isListed, isOpen)
		}
	}
	for n := range 200 {
		put(t, s, approval(n), began)
		record(t, s, tenant, inbox.Opened, n)
		next(n, true)
		if err := s.Settle(t.Context(), tenant, approval(n)); err != nil {
			t.Fatal(err)
		}
		record(t, s, tenant, inbox.Decided, n)
		next(n, false)
	}
}

func TestFeedResumesAfterCursor(t *testing.T) {
	t.Parallel()
	s, x := open(t)
	page, err := x.List(tenant, inbox.Filter{}, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	live := follow(t, s, tenant, nil)
	for n := range 3 {
		put(t, s, approval(n), began)
		record(t, s, tenant, inbox.Opened, n)
		record(t, s, tenant, inbox.Opened, n) // recorded twice
	}
	record(t, s, "other", inbox.Opened, 9)
	record(t, s, tenant, inbox.Decided, 1)
	want := []string{"opened int_000000", "opened int_000001", "opened int_000002", "decided int_000001"}
	got, cursors := read(t, live, 4)
	if !slices.Equal(got, want) {
		t.Fatalf("events = %v, want %v", got, want)
	}
	texts := make([]string, len(cursors))
	for i, c := range cursors {
		texts[i] = c.String()
		again, err := s.ParseCursor(texts[i])
		if err != nil {
			t.Fatal(err)
		}
		rest, _ := read(t, follow(t, s, tenant, &again), len(want)-1-i)
		if !slices.Equal(rest, want[i+1:]) {
			t.Errorf("events after cursor %s = %v, want %v", texts[i], rest, want[i+1:])
		}
	}
	if !slices.IsSorted(texts) {
		t.Errorf("cursors = %v, want them in order", texts)
	}
	listed, err := s.ParseCursor(page.Events.String())
	if err != nil {
		t.Fatal(err)
	}
	if all, _ := read(t, follow(t, s, tenant, &listed), len(want)); !slices.Equal(all, want) {
		t.Errorf("events after the cursor of the empty list = %v, want %v", all, want)
	}
	if m, err := live.Next(t.Context(), 10*time.Millisecond); m != nil || err != nil {
		t.Errorf("event after the last one: got %v, %v, want none", m, err)
	}
	if e, err := s.Event(t.Context(), tenant, "evt_decided_1"); err != nil || e.Type != inbox.Decided || e.Approval.ID != "int_000001" {
		t.Errorf("Event = %+v, %v, want the decision of int_000001", e, err)
	}
	if _, err := s.Event(t.Context(), "other", "evt_decided_1"); !errors.Is(err, inbox.ErrUnknownEvent) {
		t.Errorf("event of another tenant: got %v, want %v", err, inbox.ErrUnknownEvent)
	}
}

func TestInvalidCursors(t *testing.T) {
	t.Parallel()
	s, x := open(t)
	page, err := x.List(tenant, inbox.Filter{}, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	good := page.Events.String()
	other, _ := open(t)
	old := strings.Split(good, "-")
	old[1] = fmt.Sprintf("%08x", time.Now().Add(-inbox.Resumable-time.Minute).Unix())
	for text, want := range map[string]error{
		"": stream.ErrInvalidCursor, "x": stream.ErrInvalidCursor, good + "-": stream.ErrInvalidCursor, good[1:]: stream.ErrInvalidCursor,
		strings.Join(old, "-"): inbox.ErrGone,
	} {
		if _, err := s.ParseCursor(text); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	if _, err := other.ParseCursor(good); !errors.Is(err, stream.ErrLogReplaced) {
		t.Errorf("cursor of another log: got %v, want %v", err, stream.ErrLogReplaced)
	}
}
