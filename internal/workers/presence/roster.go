package presence

import (
	"cmp"
	"sync"
)

// roster is the other live workers, as one worker sees them. It is safe for concurrent use.
type roster struct {
	mu     sync.Mutex
	others map[string]*otherWorker // by key. Guarded by mu
}

// otherWorker is a live worker. The mutex of the roster guards all but its key and its name.
type otherWorker struct {
	key, name string
	// missedBeats counts the beats of the roster's worker since the last beat of this one.
	missedBeats int
	// hasAnswered is whether it has answered a probe. refusals counts the refused probes since its
	// last answer or beat.
	hasAnswered bool
	refusals    int
	// isClaimed is whether a goroutine of the roster's worker takes over from it.
	isClaimed bool
}

// claim reports whether the caller takes over from the worker: no other goroutine does. The caller
// holds the mutex.
func (o *otherWorker) claim() bool {
	isFirst := !o.isClaimed
	o.isClaimed = true
	return isFirst
}

// replace replaces all workers.
func (r *roster) replace(others map[string]*otherWorker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.others = others
}

// remove removes a worker that has stopped or is dead.
func (r *roster) remove(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.others, key)
}

// release lets another goroutine take over from a worker, after new signs of its death.
func (r *roster) release(dead *otherWorker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	dead.isClaimed, dead.refusals = false, 0
}

// countBeat counts the missed beats and the refused probes of a worker from 0, and adds the worker if
// it is new.
func (r *roster) countBeat(key, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	other := r.others[key]
	if other == nil {
		other = &otherWorker{key: key, name: name}
		r.others[key] = other
	}
	other.missedBeats, other.refusals = 0, 0
}

// countMissedBeats counts one missed beat for each worker, and returns those that are dead. The
// caller takes over from them.
func (r *roster) countMissedBeats() (dead []*otherWorker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.others {
		if other.missedBeats++; other.missedBeats >= maxMissedBeats && other.claim() {
			dead = append(dead, other)
		}
	}
	return dead
}

// countProbe counts a probe that has been answered or refused.
func (r *roster) countProbe(key string, isRefused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch other := r.others[key]; {
	case other == nil:
	case isRefused:
		other.refusals++
	default:
		other.hasAnswered, other.refusals = true, 0
	}
}

// judgeNeighbor returns the neighbor of the worker with a key, and whether it is dead by refused
// probes: then the caller takes over from it. isSettled is whether they count. It returns nil if
// there is no other worker.
func (r *roster) judgeNeighbor(key string, isSettled bool) (neighbor *otherWorker, isDead bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if neighbor = r.neighbor(key); neighbor == nil {
		return nil, false
	}
	if !isSettled {
		neighbor.refusals = 0
	}
	return neighbor, neighbor.hasAnswered && neighbor.refusals >= maxRefusals && neighbor.claim()
}

// neighbor returns the next worker after a key in the order of keys, or the first one; nil = there is
// none. The caller holds the mutex.
func (r *roster) neighbor(key string) *otherWorker {
	var first, next *otherWorker
	for _, other := range r.others {
		if first == nil || other.key < first.key {
			first = other
		}
		if other.key > key && (next == nil || other.key < next.key) {
			next = other
		}
	}
	return cmp.Or(next, first)
}
