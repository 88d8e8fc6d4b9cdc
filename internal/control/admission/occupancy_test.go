package admission

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRateIsSpread: a sixtieth of the rate may begin at once, and then one call after each interval.
func TestRateIsSpread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ perMinute, burst int }{{600, 10}, {60, 1}, {10, 1}, {6000, 100}} {
		limit, now, o := Limit{PerMinute: c.perMinute}, time.Unix(1000, 0), occupancy{}
		for range 3 { // an idle time gives no more than one burst
			begun := 0
			for o.delay("a", limit, now) <= 0 {
				o.begin("a", 1, limit, now)
				begun++
			}
			if begun != c.burst {
				t.Errorf("%d per minute: %d calls at once, want %d", c.perMinute, begun, c.burst)
			}
			if got := o.delay("a", limit, now); got != limit.interval() {
				t.Errorf("%d per minute: the next call in %s, want %s", c.perMinute, got, limit.interval())
			}
			now = now.Add(limit.interval())
			if got := o.delay("b", limit, now); got > 0 {
				t.Errorf("%d per minute: another call in %s after an interval, want now", c.perMinute, got)
			}
			now = now.Add(time.Hour)
		}
	}
}

// TestWorkersTakeTurns: workers that always want more calls get them in turn.
func TestWorkersTakeTurns(t *testing.T) {
	t.Parallel()
	limit, now, o := Limit{Calls: 2}, time.Unix(1000, 0), occupancy{}
	calls, began := map[string]int{}, []string{}
	for range 12 {
		for _, worker := range []string{"a", "b", "c"} { // "a" always asks first
			for o.delay(worker, limit, now) <= 0 {
				calls[worker]++
				began = append(began, worker)
				o.begin(worker, calls[worker], limit, now)
			}
			o.enqueue(worker, calls[worker], now)
		}
		first := began[len(began)-2] // the older call ends
		calls[first]--
		o.hold(first, calls[first], now)
	}
	if got, want := strings.Join(began, ""), "aa"+strings.Repeat("abc", 4); !strings.HasPrefix(got, want[:12]) {
		t.Errorf("calls began in the order %s, want %s", got, want)
	}
}

// TestLeasesEnd: the calls and the wait of a worker that does not renew its lease end, and those of
// another one stay.
func TestLeasesEnd(t *testing.T) {
	t.Parallel()
	limit, now, o := Limit{Calls: 2}, time.Unix(1000, 0), occupancy{}
	o.begin("dead", 1, limit, now)
	o.begin("alive", 1, limit, now)
	o.enqueue("waits and dies", 0, now)
	if got := o.delay("new", limit, now); got != leaseTime {
		t.Errorf("delay = %s, want the time of the leases", got)
	}
	o.hold("alive", 1, now.Add(renewEvery))
	later := now.Add(leaseTime)
	o.expire(later)
	if got := o.delay("new", limit, later); got > 0 || o.calls() != 1 || slices.Contains(o.Waiting, "waits and dies") {
		t.Errorf("after the leases: delay %s, occupancy %+v; want the call of the worker that is alive", got, o)
	}
}
