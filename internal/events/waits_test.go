package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/stream"
)

// waitsOf returns waits for events of many tenants, and as many with each event.
func waitsOf(tenants, perTenant int) *Waits {
	w := newWaits(nil)
	now := time.Now()
	for t := range tenants {
		for i := range perTenant {
			wait := &Wait{ID: fmt.Sprintf("int_%d", i), Tenant: fmt.Sprintf("t%d", t), ThreadID: fmt.Sprintf("thread-%d", i), Kind: stream.WaitEvent, Event: "paid", Until: now.Add(time.Duration(i*7919%1000) * time.Second)}
			w.set(wait.key(), &openWait{wait, nil})
		}
	}
	return w
}

// TestWaitsOfTenant: the list of a tenant has its waits only, in order, and without those that ended.
func TestWaitsOfTenant(t *testing.T) {
	t.Parallel()
	w := waitsOf(3, 100)
	every := func(*Wait) bool { return true }
	ended := w.List("t1", every)[0]
	w.set(ended.key(), nil)
	w.set(ended.key(), nil)
	list := w.List("t1", every)
	if len(list) != 99 || len(w.List("t0", every)) != 100 || len(w.List("unknown", every)) != 0 {
		t.Fatalf("waits = %d, %d and %d, want 99, 100 and none", len(list), len(w.List("t0", every)), len(w.List("unknown", every)))
	}
	for i, wait := range list {
		if wait.Tenant != "t1" || wait == ended || i > 0 && list[i-1].Position() >= wait.Position() {
			t.Errorf("wait %d = %+v", i, wait)
		}
	}
	for _, wait := range list {
		w.set(wait.key(), nil)
	}
	if len(w.byTenant) != 2 || len(w.byEvent) != 2 {
		t.Errorf("indexes have %d tenants and %d events, want 2", len(w.byTenant), len(w.byEvent))
	}
}

// BenchmarkListWaits lists the waits of one of 200 tenants.
func BenchmarkListWaits(b *testing.B) {
	w := waitsOf(200, 500)
	for b.Loop() {
		w.List("t7", func(*Wait) bool { return true })
	}
}
