package admission

import (
	"slices"
	"time"
)

// occupancy is the use of one provider: the calls of all workers that are active or wait, and how much of the
// rate they have used. It is the value of the provider's key in the bucket, as JSON. Its times are those of the
// workers' clocks.
type occupancy struct {
	// Workers are the workers with active or waiting calls, by their IDs.
	Workers map[string]lease `json:"workers,omitempty"`
	// Waiting are the IDs of the workers with waiting calls, in the order of their turns. A worker leaves it
	// when one of its calls begins, and enters it again at the end if another one waits, so that each worker
	// gets its share.
	Waiting []string `json:"waiting,omitempty"`
	// Next is the theoretical arrival time of the generic cell rate algorithm, in microseconds since
	// 1970: the rate is used up to this time.
	Next int64 `json:"next,omitempty"`
}

// lease is the calls of a worker. It ends with Until, in milliseconds since 1970, unless the worker
// renews it: the calls of a killed worker do not count for long.
type lease struct {
	Calls int `json:"calls,omitempty"`
	// Waiting is how many calls of the worker wait, as of its last write. It decides nothing.
	Waiting int   `json:"waiting,omitempty"`
	Until   int64 `json:"until"`
}

// leaseTime is the time of a lease, and renewEvery the interval of its renewals.
const (
	leaseTime  = 10 * time.Second
	renewEvery = 3 * time.Second
)

// expire removes the leases that have ended.
func (o *occupancy) expire(now time.Time) {
	for id, l := range o.Workers {
		if l.Until <= now.UnixMilli() {
			delete(o.Workers, id)
		}
	}
	o.Waiting = slices.DeleteFunc(o.Waiting, func(id string) bool { _, isLive := o.Workers[id]; return !isLive })
}

// hold sets the number of calls of a worker and renews its lease. A worker without calls that does not
// wait has no lease.
func (o *occupancy) hold(worker string, calls int, now time.Time) {
	if calls == 0 && !slices.Contains(o.Waiting, worker) {
		delete(o.Workers, worker)
		return
	}
	if o.Workers == nil {
		o.Workers = map[string]lease{}
	}
	o.Workers[worker] = lease{Calls: calls, Until: now.Add(leaseTime).UnixMilli()}
}

// setWaiting sets how many calls of a worker with a lease wait.
func (o *occupancy) setWaiting(worker string, waiting int) {
	if l, isKnown := o.Workers[worker]; isKnown {
		l.Waiting = waiting
		o.Workers[worker] = l
	}
}

// dequeue removes a worker from those that wait.
func (o *occupancy) dequeue(worker string) {
	o.Waiting = slices.DeleteFunc(o.Waiting, func(id string) bool { return id == worker })
}

// calls returns the active calls of all workers.
func (o *occupancy) calls() (n int) {
	for _, l := range o.Workers {
		n += l.Calls
	}
	return n
}

// waiting returns the calls of all workers that wait.
func (o *occupancy) waiting() (n int) {
	for _, l := range o.Workers {
		n += l.Waiting
	}
	return n
}

// delay returns how long a worker has to wait for another call; 0 = it may begin now. Without a lease
// that ends, or a time of the rate, the result is an upper bound: a call of another worker may end
// earlier.
func (o *occupancy) delay(worker string, limit Limit, now time.Time) time.Duration {
	// The workers that wait longer come first, as far as calls are free. before is the number of waiting
	// workers whose turn is before this one's.
	before := slices.Index(o.Waiting, worker)
	if before < 0 {
		before = len(o.Waiting)
	}
	var wait time.Duration
	if limit.Calls > 0 && limit.Calls-o.calls() <= before {
		wait = leaseTime
		for _, l := range o.Workers {
			wait = min(wait, max(time.UnixMilli(l.Until).Sub(now), time.Millisecond))
		}
	}
	if limit.PerMinute > 0 {
		earliest := o.arrival(now).Add(limit.interval() * time.Duration(before+1-limit.burst()))
		wait = max(wait, earliest.Sub(now))
	}
	return wait
}

// arrival returns the theoretical arrival time of the next call.
func (o *occupancy) arrival(now time.Time) time.Time {
	if next := time.UnixMicro(o.Next); next.After(now) {
		return next
	}
	return now
}

// begin counts another call of a worker, which has calls then.
func (o *occupancy) begin(worker string, calls int, limit Limit, now time.Time) {
	o.dequeue(worker)
	o.hold(worker, calls, now)
	if limit.PerMinute > 0 {
		o.Next = o.arrival(now).Add(limit.interval()).UnixMicro()
	}
}

// enqueue adds a worker to those that wait, and renews its lease if less than leaseTime - renewEvery is left
// of it. It reports whether the occupancy was changed, and has to be written.
func (o *occupancy) enqueue(worker string, calls int, now time.Time) (isChanged bool) {
	known := slices.Contains(o.Waiting, worker)
	if known && time.UnixMilli(o.Workers[worker].Until).Sub(now) > leaseTime-renewEvery {
		return false
	}
	if !known {
		o.Waiting = append(o.Waiting, worker)
	}
	o.hold(worker, calls, now)
	return true
}
