package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tenant = "shop"

var began = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// approval returns the n-th approval; the first is the oldest.
func approval(n int) *inbox.Approval {
	return &inbox.Approval{
		ID: fmt.Sprintf("int_%06d", n), ThreadID: fmt.Sprintf("t%d", n), RunID: "r", Agent: []string{"support", "sales"}[n%2], ToolCallID: "call_1",
		ToolName: []string{"refund", "ship", "call"}[n%3], Args: json.RawMessage(`{"amount":70}`), ArgsDigest: "d", Message: "May it be called?",
		RequestedAt: began.Add(time.Duration(n) * time.Minute), Voting: inbox.Voting{Approvers: []string{"role:finance", "alice"}, Quorum: 1, Decisions: []inbox.Decision{}},
	}
}

// open opens an inbox on a log of its own.
func open(t testing.TB) (*inbox.Store, *inbox.Index) {
	t.Helper()
	s, err := inbox.Open(t.Context(), streamtest.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	return s, watch(t, s)
}

// watch returns a current index.
func watch(t testing.TB, s *inbox.Store) *inbox.Index {
	t.Helper()
	x, err := s.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Stop)
	return x
}

// put stores an approval as opened at a time.
func put(t testing.TB, s *inbox.Store, a *inbox.Approval, at time.Time) {
	t.Helper()
	if err := s.Put(t.Context(), tenant, a, at); err != nil {
		t.Fatal(err)
	}
}

// ids returns the IDs of the approvals in a list.
func ids(t testing.TB, items []json.RawMessage) []string {
	t.Helper()
	list := []string{}
	for _, raw := range items {
		var a inbox.Approval
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		list = append(list, a.ID)
	}
	return list
}

// list returns the IDs of the listed approvals.
func list(t testing.TB, x *inbox.Index, q inbox.Filter) []string {
	t.Helper()
	p, err := x.List(tenant, q, "", 500)
	if err != nil {
		t.Fatal(err)
	}
	return ids(t, p.Items)
}

// until waits until a list has the wanted content.
func until(t *testing.T, x *inbox.Index, q inbox.Filter, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		got := list(t, x, q)
		if slices.Equal(got, want) || len(got)+len(want) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("listed are %v, want %v", got, want)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestPendingApprovalsAreListed(t *testing.T) {
	t.Parallel()
	s, x := open(t)
	for _, n := range []int{3, 1, 2} {
		put(t, s, approval(n), began)
	}
	all := []string{"int_000001", "int_000002", "int_000003"}
	until(t, x, inbox.Filter{}, all...)
	for name, q := range map[string]struct {
		filter inbox.Filter
		want   []string
	}{
		"agent":              {inbox.Filter{Agent: "sales"}, []string{"int_000001", "int_000003"}},
		"tool":               {inbox.Filter{Tool: "refund"}, []string{"int_000003"}},
		"thread":             {inbox.Filter{Thread: "t2"}, []string{"int_000002"}},
		"age":                {inbox.Filter{Until: began.Add(2 * time.Minute)}, all[:2]},
		"role":               {inbox.Filter{Assignee: &inbox.Assignee{Roles: []string{"finance"}}}, all},
		"another role":       {inbox.Filter{Assignee: &inbox.Assignee{Roles: []string{"manager"}}}, []string{}},
		"subject":            {inbox.Filter{Assignee: &inbox.Assignee{Subject: "alice"}}, all},
		"another subject":    {inbox.Filter{Assignee: &inbox.Assignee{Subject: "bob"}}, []string{}},
		"no named approvers": {inbox.Filter{Assignee: &inbox.Assignee{Caller: true}}, []string{}},
	} {
		if got := list(t, x, q.filter); !slices.Equal(got, q.want) {
			t.Errorf("%s: %v, want %v", name, got, q.want)
		}
	}
	if p, err := x.List("other", inbox.Filter{}, "", 10); err != nil || len(p.Items) != 0 {
		t.Errorf("list of another tenant = %v (%v), want it empty", p, err)
	}
	late := watch(t, s) // another node
	if got := list(t, late, inbox.Filter{}); !slices.Equal(got, all) {
		t.Errorf("list of a node that starts later = %v, want %v", got, all)
	}
	if err := s.Settle(t.Context(), tenant, approval(2)); err != nil {
		t.Fatal(err)
	}
	until(t, x, inbox.Filter{}, all[0], all[2])
	if err := late.Forget(t.Context(), tenant, "t3", all[2]); err != nil {
		t.Fatal(err)
	}
	until(t, x, inbox.Filter{}, all[0])
}

// TestApprovalsOfCaller: an approval is not listed for a person who has already approved it, or
// for a contributor if the approval excludes contributors.
func TestApprovalsOfCaller(t *testing.T) {
	t.Parallel()
	s, x := open(t)
	own, voted, free, unrestricted := approval(1), approval(2), approval(3), approval(4)
	own.Requester, own.Contributors, own.NotByRequester = "dave", []string{"dave", "alice"}, true
	voted.Decisions = []inbox.Decision{{Decision: "approve", By: "alice", At: began}}
	free.Contributors = []string{"alice"}
	unrestricted.Approvers = nil
	split := approval(5) // for the quorum, one of the approvers has to change their vote
	split.Decisions = []inbox.Decision{{Decision: "approve", By: "alice", ArgsDigest: "d"}, {Decision: "edit", By: "carol", ArgsDigest: "e"}}
	for _, a := range []*inbox.Approval{own, voted, free, unrestricted, split} {
		put(t, s, a, began)
	}
	until(t, x, inbox.Filter{}, own.ID, voted.ID, free.ID, unrestricted.ID, split.ID)
	for name, q := range map[string]struct {
		assignee inbox.Assignee
		want     []string
	}{
		"alice":  {inbox.Assignee{Subject: "alice", Caller: true}, []string{free.ID, unrestricted.ID, split.ID}},
		"bob":    {inbox.Assignee{Subject: "bob", Caller: true}, []string{unrestricted.ID}},
		"carol":  {inbox.Assignee{Subject: "carol", Roles: []string{"finance"}, Caller: true}, []string{own.ID, voted.ID, free.ID, unrestricted.ID, split.ID}},
		"a name": {inbox.Assignee{Subject: "alice"}, []string{own.ID, voted.ID, free.ID, unrestricted.ID, split.ID}},
	} {
		if got := list(t, x, inbox.Filter{Assignee: &q.assignee}); !slices.Equal(got, q.want) {
			t.Errorf("%s: %v, want %v", name, got, q.want)
		}
	}
}

// TestPages: every approval that exists throughout the listing is on exactly one page, while other
// approvals are added and removed.
func TestPages(t *testing.T) {
	t.Parallel()
	s, x := open(t)
	for n := range 10 {
		put(t, s, approval(n), began)
	}
	var all []string
	for n := range 10 {
		all = append(all, approval(n).ID)
	}
	until(t, x, inbox.Filter{}, all...)
	first, err := x.List(tenant, inbox.Filter{}, "", 4)
	if err != nil || !slices.Equal(ids(t, first.Items), all[:4]) || first.Next == "" {
		t.Fatalf("first page = %v, cursor %q (%v), want %v", ids(t, first.Items), first.Next, err, all[:4])
	}
	if next, err := x.List(tenant, inbox.Filter{}, first.Next, 1); err != nil || !slices.Equal(ids(t, next.Items), all[4:5]) {
		t.Errorf("page after the first = %v (%v), want %v", ids(t, next.Items), err, all[4:5])
	}
	if err := s.Settle(t.Context(), tenant, approval(3)); err != nil { // the last approval of that page
		t.Fatal(err)
	}
	until(t, x, inbox.Filter{}, slices.Concat(all[:3], all[4:])...)
	second, err := x.List(tenant, inbox.Filter{}, first.Next, 6)
	if err != nil || !slices.Equal(ids(t, second.Items), all[4:]) || second.Next != "" {
		t.Errorf("second page = %v, cursor %q (%v), want %v", ids(t, second.Items), second.Next, err, all[4:])
	}
	for _, bad := range []string{"x", "!", "MDAwMDAwMDAwMDAw"} {
		if _, err := x.List(tenant, inbox.Filter{}, bad, 1); !errors.Is(err, stream.ErrInvalidCursor) {
			t.Errorf("cursor %q: got %v, want %v", bad, err, stream.ErrInvalidCursor)
		}
	}
}

// TestLateEventsChangeNothing: an event that arrives late overwrites neither a newer state nor a
// settled approval.
func TestLateEventsChangeNothing(t *testing.T) {
	t.Parallel()
	s, x := open(t)
	a := approval(1)
	put(t, s, a, began)
	voted := *a
	voted.Decisions = []inbox.Decision{{Decision: "approve", By: "alice", At: began}}
	put(t, s, &voted, began.Add(time.Minute))
	put(t, s, a, began)
	me := inbox.Filter{Assignee: &inbox.Assignee{Subject: "alice", Caller: true}}
	until(t, x, inbox.Filter{}, a.ID)
	until(t, x, me)
	if err := s.Settle(t.Context(), tenant, a); err != nil {
		t.Fatal(err)
	}
	put(t, s, a, began.Add(time.Hour))
	put(t, s, approval(2), began)
	until(t, x, inbox.Filter{}, approval(2).ID)
	unheard := approval(3) // settled before its opening was recorded
	if err := s.Settle(t.Context(), tenant, unheard); err != nil {
		t.Fatal(err)
	}
	put(t, s, unheard, began)
	put(t, s, approval(4), began)
	until(t, x, inbox.Filter{}, approval(2).ID, approval(4).ID)
}

// TestDecidedApprovalsAreListed: every index lists decided approvals, newest first, until their
// thread is purged. A lost bucket is restored from the log.
func TestDecidedApprovalsAreListed(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	s, err := inbox.Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	x := watch(t, s)
	at := time.Now().Add(-time.Hour)
	for n := range 5 {
		a := approval(n)
		e := &inbox.Event{Type: inbox.Decided, At: at.Add(time.Duration(n) * time.Minute), Approval: *a}
		run := stream.Run{Thread: stream.Thread{Tenant: tenant, ID: a.ThreadID}, ID: a.RunID}
		err := l.AppendAudit(t.Context(), run, "evt_"+a.ID, inbox.Entry{Tenant: tenant, Event: *e})
		for range 2 { // writing the same state again changes nothing
			err = errors.Join(err, s.Archive(t.Context(), tenant, e))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	old := &inbox.Event{Type: inbox.Decided, At: time.Now().Add(-inbox.ArchiveTTL), Approval: *approval(9)}
	if err := s.Archive(t.Context(), tenant, old); err != nil {
		t.Fatal(err)
	}
	listed := func(x *inbox.Index, q inbox.Filter, limit int) (ids []string) {
		t.Helper()
		for after := ""; ; {
			page, next, err := x.Decided(tenant, q, after, limit)
			if err != nil || len(page) > limit {
				t.Fatalf("page = %v, %v, want at most %d", page, err, limit)
			}
			for _, d := range page {
				ids = append(ids, d.ID)
			}
			if after = next; next == "" {
				return ids
			}
		}
	}
	await := func(x *inbox.Index, want []string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for !slices.Equal(listed(x, inbox.Filter{}, 100), want) {
			select {
			case <-ctx.Done():
				t.Fatalf("listed are %v, want %v", listed(x, inbox.Filter{}, 100), want)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	all := []string{"int_000004", "int_000003", "int_000002", "int_000001", "int_000000"}
	await(x, all)
	other := watch(t, s) // of another process
	await(other, all)
	if got := listed(other, inbox.Filter{}, 2); !slices.Equal(got, all) {
		t.Errorf("pages = %v, want %v", got, all)
	}
	if got := listed(x, inbox.Filter{Agent: "support", Tool: "ship"}, 1); !slices.Equal(got, all[:1]) {
		t.Errorf("filtered approvals = %v, want %v", got, all[:1])
	}
	// A page has as many entries as the reader may read: the others are not counted.
	thread := func(thread string, _ bool) bool { return thread == "t1" || thread == "t4" }
	if page, next, err := x.Decided(tenant, inbox.Filter{Reader: &inbox.Reader{Subject: "eve", MayRead: thread}}, "", 2); err != nil || len(page) != 2 || page[1].ID != all[3] || next != "" {
		t.Errorf("decided approvals of two threads = %v, %q, %v, want both in one page", page, next, err)
	}
	approver := func(_ string, isApprover bool) bool { return isApprover }
	for subject, want := range map[string]int{"alice": len(all), "eve": 0} {
		if page, _, err := x.Decided(tenant, inbox.Filter{Reader: &inbox.Reader{Subject: subject, MayRead: approver}}, "", 10); err != nil || len(page) != want {
			t.Errorf("decided approvals of the approver %s = %v, %v, want %d", subject, page, err, want)
		}
	}
	if page, _, err := x.Decided("another", inbox.Filter{}, "", 10); len(page) != 0 || err != nil {
		t.Errorf("approvals of another tenant = %v, %v, want none", page, err)
	}
	if _, _, err := x.Decided(tenant, inbox.Filter{}, "x", 10); !errors.Is(err, stream.ErrInvalidCursor) {
		t.Errorf("invalid cursor: got %v, want %v", err, stream.ErrInvalidCursor)
	}
	if err := s.Purge(t.Context(), stream.Thread{Tenant: tenant, ID: "t2"}); err != nil {
		t.Fatal(err)
	}
	await(x, []string{all[0], all[1], all[3], all[4]})
	if _, err := l.Conn().Request("$JS.API.STREAM.DELETE.KV_PERDURE_approvals", nil, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	lost, err := inbox.Open(t.Context(), l)
	if err == nil {
		err = lost.Restore(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	await(watch(t, lost), all) // the audit of t2 is still in the log
}
