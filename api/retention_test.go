package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/control/retention"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// retentionNode is a node with a retention of rules.
type retentionNode struct {
	*node

	cfg     api.Config
	remover *retention.Remover
}

// setupRetention starts a node whose runs end at once, with rules.
func setupRetention(t *testing.T, rules string) *retentionNode {
	t.Helper()
	r := &retentionNode{}
	r.node = setup(t, withThreadList(t), withAudit(t), func(c *api.Config) { r.cfg = *c })
	r.answerRuns()
	parsed, err := retention.Parse([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	r.temporal.stop = func(string) error { return serviceerror.NewNotFound("closed") }
	r.remover = retention.New(retention.Config{
		Rules: parsed, Log: r.log, Index: r.cfg.Threads, Delete: r.server.Deletion(), Holds: r.cfg.Audit.Holds, Writer: r.cfg.Audit.Writer, Logger: slog.New(slog.DiscardHandler),
	})
	return r
}

// tenantOfTests is the tenant of anonymous callers.
const tenantOfTests = "default"

// awaitListed waits until the node's index has a number of threads, of which some have an active run.
// The index learns of the end of a run later than its client.
func (r *retentionNode) awaitListed(want, wantActive int) {
	r.t.Helper()
	awaitCounts(r, r.cfg.Threads, want, wantActive)
}

// awaitCounts waits until an index has a number of threads, of which some have an active run.
func awaitCounts(r *retentionNode, index *threads.Index, want, wantActive int) {
	r.t.Helper()
	for {
		changed := index.Changed()
		if all, active, _ := index.Counts(tenantOfTests); all == want && active == wantActive {
			return
		}
		select {
		case <-changed:
		case <-r.ctx().Done():
			r.t.Fatal("the index did not change")
		}
	}
}

// wantRound runs a round at a time from now, which must remove a number of threads.
func (r *retentionNode) wantRound(in time.Duration, want int) {
	r.t.Helper()
	removed, err := r.remover.Round(r.ctx(), time.Now().Add(in))
	if err != nil || removed != want {
		r.t.Fatalf("a round in %s: got %d removed threads and error %v, want %d", in, removed, err, want)
	}
}

// TestThreadsExpire: an idle thread is removed after the time of its rule, and not before. A thread
// that waits, runs or has a legal hold stays. The audit log has the removal with its rule.
func TestThreadsExpire(t *testing.T) {
	t.Parallel()
	r := setupRetention(t, "default: {threads: 1h}\ntenants: {default: {agents: {other: {threads: 1s}}}}")
	for _, thread := range []string{"old", "held"} {
		r.postMessage(thread, "run-"+thread).mustStatus(t, thread, http.StatusOK)
	}
	var active stream.Place
	r.temporal.start = func(in runs.Input) (err error) { // the run begins, and ends with the test
		active = stream.Place{Run: streamRun(in), Lane: stream.LaneMain, Step: "1/model", Execution: "e-1"}
		active.After, err = r.snapshots.OpenRun(r.ctx(), active, stream.Opening{Agent: in.Agent, Revision: in.Revision, Input: in.Input, Digest: in.Digest})
		return err
	}
	running := inputOf("run-active", "said")
	running.ThreadID = "active"
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.post(running)
	}()
	r.awaitListed(3, 1)
	r.do(http.MethodPut, "/v1/threads/held/hold", `{"reason":"case 7"}`, "Content-Type", "application/json").mustStatus(t, "hold", http.StatusOK)

	r.wantRound(30*time.Minute, 0)
	r.wantRound(2*time.Hour, 1)
	r.awaitListed(2, 1)
	r.wantRound(2*time.Hour, 0)
	r.do(http.MethodGet, "/v1/threads/old", "").mustStatus(t, "the expired thread", http.StatusNotFound)
	r.do(http.MethodGet, "/v1/threads/held/messages", "").mustStatus(t, "the held thread", http.StatusOK)
	r.do(http.MethodGet, "/v1/threads/active", "").mustStatus(t, "the active thread", http.StatusOK)

	entries := r.entries("?action=thread.expire", nil)
	if len(entries) != 1 || entries[0].Thread != "old" || entries[0].Agent != "a" || entries[0].Actor != nil || entries[0].Details["rule"] != "default.threads=1h0m0s" {
		t.Errorf("the audit log has %+v, want the removal of the thread old by the default rule", entries)
	}
	r.do(http.MethodDelete, "/v1/threads/held/hold", "").mustStatus(t, "release", http.StatusNoContent)
	r.wantRound(2*time.Hour, 1)
	r.end(active)
	<-ended
}

// TestFailedThreadExpires: a thread whose last run failed is removed as an idle one.
func TestFailedThreadExpires(t *testing.T) {
	t.Parallel()
	r := setupRetention(t, "default: {threads: 1h}")
	p := stream.Place{Run: stream.Run{Thread: stream.Thread{Tenant: tenantOfTests, ID: "failed"}, ID: "r"}, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	if _, err := r.snapshots.OpenRun(r.ctx(), p, stream.Opening{Agent: "a", Continues: "r0"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.log.Seal(r.ctx(), p, &agui.RunError{Code: "internal"}); err != nil {
		t.Fatal(err)
	}
	r.awaitListed(1, 0)
	r.wantRound(30*time.Minute, 0)
	r.wantRound(2*time.Hour, 1)
	r.awaitListed(0, 0)
}

// heldRemoval deletes threads. The first deletion closes begun, and waits for resume.
type heldRemoval struct {
	retention.Threads

	once          sync.Once
	begun, resume chan struct{}
}

// Expire implements retention.Threads.
func (h *heldRemoval) Expire(ctx context.Context, t stream.Thread, before time.Time, record func() error) (bool, error) {
	h.once.Do(func() {
		close(h.begun)
		<-h.resume
	})
	return h.Threads.Expire(ctx, t, before, record)
}

// TestOneProcessRemoves: of two processes on one NATS only the one that has the lease removes
// threads. The other one does nothing meanwhile, and may work when the first one has ended its
// round. Each thread is removed, and recorded, once.
func TestOneProcessRemoves(t *testing.T) {
	t.Parallel()
	r := setupRetention(t, "default: {threads: 1h}")
	for _, thread := range []string{"one", "two", "three"} {
		r.postMessage(thread, "run-"+thread).mustStatus(t, thread, http.StatusOK)
	}
	r.awaitListed(3, 0)
	index, err := threads.Watch(t.Context(), r.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(index.Stop)
	cfg := r.remover.Config
	cfg.Index = index
	second := retention.New(cfg)

	held := &heldRemoval{Threads: r.server.Deletion(), begun: make(chan struct{}), resume: make(chan struct{})}
	r.remover.Delete = held
	later := time.Now().Add(2 * time.Hour)
	removed := make(chan int, 1)
	go func() {
		n, err := r.remover.Round(r.ctx(), later)
		if err != nil {
			t.Error(err)
		}
		removed <- n
	}()
	<-held.begun
	if n, err := second.Round(r.ctx(), later); n != 0 || err != nil {
		t.Errorf("round without the lease: got %d removed threads and error %v, want none", n, err)
	}
	close(held.resume)
	if n := <-removed; n != 3 {
		t.Errorf("round with the lease: got %d removed threads, want 3", n)
	}
	awaitCounts(r, index, 0, 0)
	r.postMessage("four", "run-four").mustStatus(t, "four", http.StatusOK)
	awaitCounts(r, index, 1, 0)
	if n, err := second.Round(r.ctx(), later); n != 1 || err != nil {
		t.Errorf("round after the lease was released: got %d removed threads and error %v, want 1", n, err)
	}
	if entries := r.entries("?action=thread.expire", nil); len(entries) != 4 {
		t.Errorf("the audit log has %s, want one entry for each of four threads", inWords(entries))
	}
}

// TestFailedRemovalKeepsNoOther: a thread that cannot be removed keeps neither other threads nor
// entries of the audit log.
func TestFailedRemovalKeepsNoOther(t *testing.T) {
	t.Parallel()
	r := setupRetention(t, "default: {threads: 1h, audit: 1h}")
	for _, thread := range []string{"stuck", "old"} {
		r.postMessage(thread, "run-"+thread).mustStatus(t, thread, http.StatusOK)
	}
	r.awaitListed(2, 0)
	calls := 0
	r.temporal.stop = func(string) error {
		if calls++; calls == 1 { // the thread stuck is older
			return serviceerror.NewUnavailable("no leader")
		}
		return serviceerror.NewNotFound("closed")
	}
	removed, err := r.remover.Round(r.ctx(), time.Now().Add(2*time.Hour))
	if removed != 1 || err == nil || !strings.Contains(err.Error(), `"stuck"`) {
		t.Errorf("a round: got %d removed threads and error %v, want 1 and an error of the thread stuck", removed, err)
	}
	r.do(http.MethodGet, "/v1/threads/old", "").wantStatus(t, "the other thread", http.StatusNotFound)
	if list := r.entries("?action=run.start", nil); len(list) != 0 {
		t.Errorf("the audit log has %s, want no entry that is older than an hour", inWords(list))
	}
}

// interruptDeletion writes what a process leaves that was killed in the deletion of a thread, after
// it had listed the deletion and before it removed the records.
func (r *retentionNode) interruptDeletion(thread stream.Thread) {
	r.t.Helper()
	last, err := r.log.LastOf(r.ctx(), thread)
	if err != nil {
		r.t.Fatal(err)
	}
	left := fmt.Sprintf(`{"threadId":%q,"seq":%d,"purged":true,"unfinished":true}`, thread.ID, last)
	if _, err := r.log.Index().PutString(r.ctx(), stream.IndexPrefix+tenantOfTests+"."+thread.ID, left); err != nil {
		r.t.Fatal(err)
	}
	for changed := r.cfg.Threads.Changed(); len(r.cfg.Threads.Unfinished()) != 1; changed = r.cfg.Threads.Changed() {
		select {
		case <-changed:
		case <-r.ctx().Done():
			r.t.Fatal("the index does not list the interrupted deletion")
		}
	}
}

// TestInterruptedDeletionTakesNoInput: nobody uses a thread whose deletion was interrupted, neither
// to read what is left nor to continue it. The same deletion completes it, and then its ID begins
// another thread.
func TestInterruptedDeletionTakesNoInput(t *testing.T) {
	t.Parallel()
	r := setupRetention(t, "")
	r.postMessage("dying", "run-1").mustStatus(t, "run", http.StatusOK)
	thread := stream.Thread{Tenant: tenantOfTests, ID: "dying"}
	r.awaitListed(1, 0)
	r.interruptDeletion(thread)
	before, err := r.log.LastOf(r.ctx(), thread)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]answer{
		"input":    r.postMessage("dying", "run-2"),
		"messages": r.do(http.MethodGet, "/v1/threads/dying/messages", ""),
		"events":   r.do(http.MethodGet, "/v1/threads/dying/events?follow=false", "", "Accept", "application/json"),
		"run":      r.do(http.MethodGet, "/v1/threads/dying/runs/run-1/events", ""),
		"shares":   r.do(http.MethodPut, "/v1/threads/dying/shares", `{"shares":[]}`),
		"fork":     r.do(http.MethodPost, "/v1/threads/dying/runs/run-1/fork", `{"threadId":"other"}`),
	} {
		a.wantStatus(t, name+": status", http.StatusGone)
		wantEqual(t, name+": problem code", a.problem.Code, "gone")
	}
	if after, err := r.log.LastOf(r.ctx(), thread); after != before || err != nil {
		t.Errorf("the log has the record %d of the thread (%v), want none after %d", after, err, before)
	}
	r.do(http.MethodDelete, "/v1/threads/dying", "").mustStatus(t, "the deletion again", http.StatusNoContent)
	if last, err := r.log.LastOf(r.ctx(), thread); last != 0 || err != nil {
		t.Errorf("the log has the record %d of the thread (%v), want none", last, err)
	}
	r.postMessage("dying", "run-3").mustStatus(t, "run in a new thread", http.StatusOK)
	wantEqual(t, "messages of the new thread", r.messages("dying"), "u-run-3 a-run-3")
}

// TestInterruptedDeletionIsCompleted: a round completes a deletion that has died before it removed
// the records, and leaves a thread that has begun again.
func TestInterruptedDeletionIsCompleted(t *testing.T) {
	t.Parallel()
	r := setupRetention(t, "")
	r.postMessage("dying", "run-1").mustStatus(t, "run", http.StatusOK)
	thread := stream.Thread{Tenant: tenantOfTests, ID: "dying"}
	r.awaitListed(1, 0)
	r.interruptDeletion(thread)
	r.wantRound(0, 0)
	if last, err := r.log.LastOf(r.ctx(), thread); last != 0 || err != nil {
		t.Errorf("the log has the record %d of the thread (%v), want none", last, err)
	}
	for changed := r.cfg.Threads.Changed(); len(r.cfg.Threads.Unfinished()) != 0; changed = r.cfg.Threads.Changed() {
		select {
		case <-changed:
		case <-r.ctx().Done():
			t.Fatal("the index lists the completed deletion")
		}
	}
	r.postMessage("dying", "run-2").mustStatus(t, "run in a new thread", http.StatusOK)
	if err := r.log.FinishPurge(r.ctx(), thread); err != nil {
		t.Fatal(err)
	}
	r.do(http.MethodGet, "/v1/threads/dying/messages", "").mustStatus(t, "the new thread", http.StatusOK)
}

// TestAuditEntriesExpire: entries of a tenant expire by its rule, and those of the platform by the
// default.
func TestAuditEntriesExpire(t *testing.T) {
	t.Parallel()
	r := setupRetention(t, "default: {audit: 0}\ntenants: {default: {audit: 1h}}")
	r.postMessage("a", "run-1").mustStatus(t, "run", http.StatusOK)
	if err := r.cfg.Audit.Writer.Record(r.ctx(), store.OfTenant(tenantOfTests), audit.Entry{Action: audit.LoadKeys, Outcome: audit.Accepted}); err != nil {
		t.Fatal(err)
	}
	r.wantRound(2*time.Hour, 0)
	r.wantRound(2*time.Hour, 0)
	if list := r.entries("?action=run.start", nil); len(list) != 0 {
		t.Errorf("the audit log has %s, want no entry that is older than an hour", inWords(list))
	}
	if list := r.entries("?action=audit.expire", nil); len(list) == 0 || list[0].Details["rule"] != "tenants.default.audit=1h0m0s" {
		t.Errorf("the audit log has %s, want the expiry with its rule", inWords(list))
	}
}
