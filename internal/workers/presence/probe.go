package presence

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// A killed process loses its connection to NATS at once, and with it its subscriptions. So a worker
// probes another one, its neighbor, with a core NATS message. If no subscription receives the probe,
// NATS refuses it: it answers "no responders" (https://docs.nats.io/nats-concepts/core-nats/reqreply).
//
//	worker A ──probe every 100 ms──► A's neighbor B    alive: B answers
//	                                                   hung: no answer, which means nothing
//	         ◄─────no responders──── NATS              six in a row: B is dead
//
//   - The neighbor is the next worker in the order of keys. So the number of probes grows with the
//     number of workers, and not with its square. If a worker and the one that probes it die
//     together, missed beats tell.
//   - A live worker has no subscription between the loss of a connection and the next one, for
//     instance after the death of its NATS node. It reconnects before six probes are refused (see
//     reconnectDelay in package connect). A probe that is answered or a beat starts the count again.
//   - If NATS restarts as a whole, the neighbor may reconnect later than this worker. So a worker
//     whose own connection is new to it counts no refusals for settleTime.
//   - Refusals count only if the neighbor has answered a probe of this worker before. Other programs
//     and permissions of NATS may keep a live neighbor from it.

const (
	// probeInterval is the interval of the probes of a worker.
	probeInterval = 100 * time.Millisecond
	// maxRefusals is how many probes in a row NATS refuses before the neighbor counts as dead.
	maxRefusals = 6
	// settleTime is how long a worker counts no refusals after it has reconnected to NATS.
	settleTime = maxMissedBeats * beatInterval
)

// statusNoResponders is the status of NATS's answer to a message that nobody receives.
const statusNoResponders = "503"

// prober is the part of a worker in probes. The caller of listen calls stop, after run has returned.
type prober struct {
	conn *nats.Conn
	// subject returns the prefix of a worker's subjects.
	subject func(worker string) string
	// worker is the name of this worker, others are the other ones.
	worker string
	others *roster
	// listener is the subscription of this worker; nil = listen has failed.
	listener *nats.Subscription
	// isHeard is whether this worker has answered its own probe.
	isHeard atomic.Bool

	// reconnections is the number of reconnections of conn that are known. Refusals count again from
	// settled on. Only run uses both.
	reconnections uint64
	settled       time.Time
}

// listen subscribes to the probes of other workers, and to the answers to those of this worker. It
// probes this worker itself: without an answer, for which NATS may lack the permissions, it probes no
// other one.
func (r *prober) listen() (err error) {
	if r.listener, err = r.conn.Subscribe(r.subject(r.worker)+".>", r.receive); err != nil {
		return fmt.Errorf("presence: listen for probes: %w", err)
	}
	r.reconnections = r.conn.Stats().Reconnects // earlier ones do not matter
	return r.send(r.worker)
}

// stop ends the subscription. From then on NATS refuses the probes of this worker.
func (r *prober) stop() {
	if r.listener != nil {
		_ = r.listener.Unsubscribe() // it fails if the connection is closed, and with it the subscription
	}
}

// send sends a probe to a worker. The answer comes to a subject of this worker, and a refusal, too.
func (r *prober) send(worker string) error {
	if err := r.conn.PublishRequest(r.subject(worker)+".probe", r.subject(r.worker)+".answer."+keyOf(worker), nil); err != nil {
		return fmt.Errorf("presence: probe: %w", err)
	}
	return nil
}

// receive answers a probe of another worker, or counts the answer or the refusal of an own one. It
// runs on the goroutine of the subscription.
func (r *prober) receive(m *nats.Msg) {
	if m.Reply != "" {
		_ = r.conn.Publish(m.Reply, nil) // without an answer, missed beats tell
		return
	}
	isRefused, key := m.Header.Get("Status") == statusNoResponders, m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	if key == keyOf(r.worker) {
		r.isHeard.Store(!isRefused)
		return
	}
	r.others.countProbe(key, isRefused)
}

// run probes the neighbor every probeInterval until ctx ends, and calls takeOver if it is dead.
func (r *prober) run(ctx context.Context, takeOver func(ctx context.Context, dead *otherWorker)) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		if dead := r.probe(); dead != nil {
			takeOver(ctx, dead)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// probe sends one probe to the neighbor, or returns it if it is dead.
func (r *prober) probe() (dead *otherWorker) {
	if !r.conn.IsConnected() {
		return nil
	}
	now := time.Now()
	if n := r.conn.Stats().Reconnects; n != r.reconnections {
		r.reconnections, r.settled = n, now.Add(settleTime)
		_ = r.send(r.worker) // the permissions may have changed
	}
	if !r.isHeard.Load() {
		return nil
	}
	neighbor, isDead := r.others.judgeNeighbor(keyOf(r.worker), !now.Before(r.settled))
	switch {
	case neighbor == nil:
	case isDead:
		return neighbor
	default:
		_ = r.send(neighbor.name)
	}
	return nil
}
