package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrInterrupted tells that the node has stopped following the log, or cannot decode a record.
// Nothing is lost: a new reader continues with the last cursor, in this process or another one.
var ErrInterrupted = errors.New("stream: the node has stopped following the log")

// Bounds of the records that a node keeps in memory of a followed thread. A reader that lags
// further reads the log itself.
const (
	feedRecords = 1024
	feedBytes   = 4 << 20
)

// logReads bounds how many readers of a node read the log concurrently. A reader has its turn for
// one batch, and not while its client takes the batch.
const logReads = 32

// Follower reads the log once for all readers of a process. It has one consumer, whatever the
// number of runs, and appends records to the feeds of the threads that have readers. It drops
// records of other threads without decoding them. When its consumer breaks, it starts another one
// after the last delivered record. A Follower is safe for concurrent use; it owns one goroutine
// until Stop.
//
//	JetStream ──one consumer──► Follower ──► feed of a thread ──► Tail, Tail, …
//	JetStream ──direct get of the past, and of records that have left the feed ──┘ spliced by sequence
//
// A reader holds one batch of records at a time (see batchBytes). The follower never waits for a
// reader, so a slow client delays neither runs nor other clients.
type Follower struct {
	log   *Log
	stop  context.CancelFunc // ends run
	done  chan struct{}      // closed when run has returned
	reads chan struct{}      // has an entry for each reader that reads the log now
	usage usage

	mu        sync.Mutex
	feeds     map[string]*feed // by ThreadSubject; a thread without readers has none
	delivered uint64           // every record up to here has gone to its feed
	ended     bool             // the follower has stopped; new feeds are ended from the beginning
}

// Follow starts a follower after the log's last record. ctx bounds the start only; the follower
// runs until the caller stops it or the connection is closed.
func (l *Log) Follow(ctx context.Context) (*Follower, error) {
	s, err := l.js.Stream(ctx, l.name)
	if err != nil {
		return nil, fmt.Errorf("stream: follow: %w", err)
	}
	f := &Follower{
		log: l, done: make(chan struct{}), reads: make(chan struct{}, logReads),
		feeds: map[string]*feed{}, delivered: s.CachedInfo().State.LastSeq,
		usage: usage{added: map[string]int64{}},
	}
	first, err := l.consume(ctx, f.delivered, f.deliver)
	if err != nil {
		return nil, fmt.Errorf("stream: follow: %w", err)
	}
	var runCtx context.Context
	runCtx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	go f.run(runCtx, first)
	return f, nil
}

// Stop ends the follower, and waits for its goroutine, which does not wait for the log. Its readers
// end with ErrInterrupted.
func (f *Follower) Stop() {
	f.stop()
	<-f.done
}

// run replaces the consumer when it breaks, until the follower is stopped or the connection is
// closed. A replacement begins after the last delivered record, so no feed lacks a record.
func (f *Follower) run(ctx context.Context, c *consumer) {
	defer close(f.done)
	defer f.end()
	for {
		select {
		case <-c.broken:
		case <-c.lost:
		case <-ctx.Done():
		}
		c.stop()
		var err error
		if c, err = f.log.consumeAgain(ctx, f.position(), f.deliver); err != nil {
			return
		}
	}
}

// position returns the sequence up to which every record has gone to its feed.
func (f *Follower) position() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.delivered
}

// end ends all feeds, and those that are attached later.
func (f *Follower) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for _, feed := range f.feeds {
		feed.end()
	}
}

// deliver appends one record to its feed. The consumer calls it for one record after the other, in
// the order of the log. The position and the feed change under one lock, so attach sees both or
// neither.
func (f *Follower) deliver(msg jetstream.Msg, meta *jetstream.MsgMetadata) {
	seq := meta.Sequence.Stream
	thread, _, lane, ok := splitSubject(msg.Subject())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delivered = seq
	f.usage.add(f.log.tenantOf(msg.Subject()), sizeOf(msg))
	feed := f.feeds[thread]
	if !ok || feed == nil || lane.IsInternal() {
		return
	}
	r, err := decodeRecord(f.log, msg.Subject(), seq, meta.Timestamp, msg.Headers().Get(header), msg.Data())
	if err != nil {
		feed.end() // readers must not skip the record; a new reader fails at it too
		return
	}
	feed.push(r)
}

// attach registers a reader at the feed of a thread, by its subject, and returns the follower's
// position. The feed gets every record of the thread after that position.
func (f *Follower) attach(thread string) (fd *feed, at uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd = f.feeds[thread]
	if fd == nil {
		fd = &feed{ended: f.ended, evicted: f.delivered}
		f.feeds[thread] = fd
	}
	fd.readers++
	return fd, f.delivered
}

// detach removes a reader. The last one frees the feed with its records.
func (f *Follower) detach(thread string, fd *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd.readers--
	if fd.readers == 0 {
		delete(f.feeds, thread)
	}
}

// readBatch is Log.readBatch, after waiting for one of the logReads turns.
func (f *Follower) readBatch(ctx context.Context, subject string, from, to uint64) ([]*Record, error) {
	select {
	case f.reads <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-f.reads }()
	return f.log.readBatch(ctx, subject, from, to)
}

// reached reports whether all records up to one have gone to their feeds.
func (f *Follower) reached(seq uint64) bool { return f.position() >= seq }

// Tail reads the records of one run, or of all runs of a thread, without proposals: the existing
// ones by Past, then live ones by Next. It is used by one goroutine, which closes it.
type Tail struct {
	follower *Follower
	feed     *feed
	thread   string      // subject of the thread
	token    string      // of the run; "" = all runs of the thread
	subject  string      // filter of the records that are read
	idle     *time.Timer // reused by every call of Next
	position uint64      // Next returns the records after it; see At
}

// Log returns the log that is followed.
func (f *Follower) Log() *Log { return f.log }

// Tail attaches to a run. It misses no record that is written after it returns, so attach before
// the run is started. The caller closes the Tail.
func (f *Follower) Tail(run Run) *Tail {
	return f.tail(f.log.ThreadSubject(run.Thread), Token(run.ID), f.log.RunSubject(run)+".>")
}

// ThreadTail attaches to all runs of a thread. The caller closes the Tail.
func (f *Follower) ThreadTail(thread Thread) *Tail {
	subject := f.log.ThreadSubject(thread)
	return f.tail(subject, "", subject+".>")
}

// TailOf attaches to all runs of the thread of a record. The caller closes the Tail.
func (f *Follower) TailOf(r *Record) *Tail { return f.tail(r.thread, "", r.thread+".>") }

// tail attaches to a thread, by its subject. token is that of the run that is read; "" = all runs.
func (f *Follower) tail(thread, token, subject string) *Tail {
	fd, at := f.attach(thread)
	t := &Tail{follower: f, feed: fd, thread: thread, token: token, subject: subject, idle: time.NewTimer(time.Hour), position: at}
	t.idle.Stop()
	return t
}

// At returns the sequence after which Next continues. At first it is the follower's position:
// records up to there are returned by Past only.
func (t *Tail) At() uint64 { return t.position }

// Log returns the log that is read.
func (t *Tail) Log() *Log { return t.follower.log }

// Has reports whether a record belongs to the run, or the thread, that is read.
func (t *Tail) Has(r *Record) bool {
	return r.thread == t.thread && (t.token == "" || r.run == t.token)
}

// Missing is Log.Missing for the thread that is read.
func (t *Tail) Missing(ctx context.Context, seq uint64) (withdrawn bool, err error) {
	return t.follower.log.missing(ctx, t.thread, seq)
}

// Close detaches the reader from its feed. It must be called exactly once.
func (t *Tail) Close() {
	t.idle.Stop()
	t.follower.detach(t.thread, t.feed)
}

// Past yields the existing records of the tail from a sequence on, without proposals. It is called
// at most once, before Next, and may be left out for a new run.
//
// Past asks the leader for the last record after the feed was attached, so every later record
// arrives by the feed: there is no gap between the two. Next then continues after that record.
func (t *Tail) Past(ctx context.Context, from uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		last, err := t.follower.log.Last(ctx, t.subject)
		if err != nil {
			yield(nil, err)
			return
		}
		if last == nil {
			return
		}
		for r, err := range t.Between(ctx, from, last.Seq) {
			if !yield(r, err) || err != nil {
				return
			}
		}
		t.position = max(t.position, last.Seq)
	}
}

// Between yields the records from one sequence to another, both inclusive, without proposals. A
// record of the tail must exist at to. Between takes records from the feed if it has them:
// otherwise thousands of readers that attach at the same time would each read the log.
func (t *Tail) Between(ctx context.Context, from, to uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		from, err := t.skipTo(ctx, from, to)
		for err == nil && from <= to {
			var batch []*Record
			if batch, err = t.nextBatch(ctx, from, to); err != nil {
				break
			}
			from = to + 1 // the feed has no other record of the run up to there
			for _, r := range batch {
				from = r.Seq + 1
				if !r.Lane.IsInternal() && !yield(r, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// skipTo returns the sequence of the first record of the tail at or after from. It asks the leader
// only if the feed has evicted records since from and has later ones of the tail: if all evicted
// records are of other runs, the feed has the whole range.
func (t *Tail) skipTo(ctx context.Context, from, to uint64) (uint64, error) {
	if !t.follower.reached(to) || !t.feed.lacksBeginning(from, to, t.token) {
		return from, nil
	}
	first, err := t.follower.log.First(ctx, t.subject, from)
	if err != nil || first == nil {
		return from, err
	}
	return max(from, first.Seq), nil
}

// nextBatch returns the next records of a range: from the feed if it has them all, else from the
// log. The feed may return none, which means that the rest of the range has none.
func (t *Tail) nextBatch(ctx context.Context, from, to uint64) ([]*Record, error) {
	if t.follower.reached(to) {
		if records, ok := t.feed.batch(from, to, t.token); ok {
			return records, nil
		}
	}
	return t.follower.readBatch(ctx, t.subject, from, to)
}

// Next waits for records after At and returns them, without proposals. It returns none and no error
// after idle has passed without any. A reader that lags gets batches of the log until it has caught
// up with the feed.
//
// The error is ErrInterrupted if the follower has stopped, ErrGone if the thread was purged before
// the reader had all of it, a failure of the log, or the cause of ctx.
func (t *Tail) Next(ctx context.Context, idle time.Duration) ([]*Record, error) {
	t.idle.Reset(idle)
	for {
		answer, err := t.feed.nextAfter(t.position, t.token)
		if err == nil && answer.evicted > t.position {
			answer, err = t.catchUp(ctx, answer.evicted)
		}
		if err != nil {
			return nil, err
		}
		t.position = answer.position
		if len(answer.records) > 0 {
			return answer.records, nil
		}
		select {
		case <-answer.changed:
		case <-answer.retry:
		case <-t.idle.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// catchUp reads the next batch of the records that have left the feed before the reader took them.
// evicted, the last of them, is a record of the thread but not always of the run. readBatch needs a
// last record that exists, so catchUp reads the whole thread and filters. During an outage it
// returns nothing and a pause, because a reader at the feed would wait as well.
func (t *Tail) catchUp(ctx context.Context, evicted uint64) (feedAnswer, error) {
	batch, err := t.follower.readBatch(ctx, t.thread+".>", t.position+1, evicted)
	if errors.Is(err, ErrUnavailable) && !isPermanent(err) && ctx.Err() == nil {
		return feedAnswer{position: t.position, retry: time.After(longestPause)}, nil
	}
	if err != nil {
		return feedAnswer{}, err
	}
	answer := feedAnswer{position: t.position, retry: closedRetry}
	if len(batch) == 0 {
		answer.position = evicted
	}
	for _, r := range batch {
		answer.position = r.Seq
		if !r.Lane.IsInternal() && (t.token == "" || r.run == t.token) {
			answer.records = append(answer.records, r)
		}
	}
	return answer, nil
}

// feed has the newest records of one thread for its readers, bounded by feedRecords and feedBytes.
// The follower appends and evicts; it never waits for a reader. A feed lives while the thread has
// readers.
type feed struct {
	readers int // guarded by Follower.mu

	mu      sync.Mutex
	recs    []*Record     // in the order of the log, without those of internal lanes
	bytes   int           // of recs
	evicted uint64        // records up to here were evicted, or came before the feed
	ended   bool          // no record will arrive; readers that have taken recs get ErrInterrupted
	changed chan struct{} // closed and replaced when a record arrives; nil while no reader waits
}

// push appends a record, evicts the oldest ones beyond the bounds, and wakes the readers. The
// newest record is kept, whatever its size.
func (fd *feed) push(r *Record) {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	fd.recs = append(fd.recs, r)
	fd.bytes += r.size
	for len(fd.recs) > feedRecords || fd.bytes > feedBytes && len(fd.recs) > 1 {
		fd.evicted = fd.recs[0].Seq
		fd.bytes -= fd.recs[0].size
		fd.recs[0] = nil
		fd.recs = fd.recs[1:]
	}
	fd.wake()
}

// end ends the feed and wakes the readers.
func (fd *feed) end() {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	fd.ended = true
	fd.wake()
}

// wake wakes all waiting readers. The caller holds mu.
func (fd *feed) wake() {
	if fd.changed != nil {
		close(fd.changed)
		fd.changed = nil
	}
}

// feedAnswer is the answer of a feed, or of catchUp, to a reader at a sequence. Without records and
// without an eviction, the reader waits for changed or retry.
type feedAnswer struct {
	records  []*Record
	position uint64 // the reader's new position: it has seen every record of its run up to here
	evicted  uint64 // not 0: the feed lacks records after the reader's position, up to here
	// changed is closed when more records arrive. retry receives when the reader is to ask again.
	// At most one of them is set.
	changed <-chan struct{}
	retry   <-chan time.Time
}

// closedRetry is feedAnswer.retry for a reader that is to ask again without a pause: it is closed.
var closedRetry = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// nextAfter returns the next records of a run ("" = of all runs) after a sequence, at most a batch.
// If the feed has evicted some of them, it returns only how far. The error is ErrInterrupted if the
// feed has ended and has no more records.
func (fd *feed) nextAfter(seq uint64, run string) (feedAnswer, error) {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	if seq < fd.evicted {
		return feedAnswer{position: seq, evicted: fd.evicted}, nil
	}
	answer := feedAnswer{position: seq}
	var b batch
	for _, r := range fd.recs[fd.search(seq):] {
		if (run == "" || r.run == run) && !b.add(r) {
			break
		}
		answer.position = r.Seq
	}
	if answer.records = b.records; len(answer.records) > 0 {
		return answer, nil
	}
	if fd.ended {
		return answer, ErrInterrupted
	}
	if fd.changed == nil {
		fd.changed = make(chan struct{})
	}
	answer.changed = fd.changed
	return answer, nil
}

// batch returns the next records of a run ("" = of all runs) with from ≤ sequence ≤ to, at most a
// batch. ok is false if the feed has evicted some, or has ended.
func (fd *feed) batch(from, to uint64, run string) (records []*Record, ok bool) {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	if from <= fd.evicted || fd.ended {
		return nil, false
	}
	var b batch
	for _, r := range fd.recs[fd.search(from-1):] {
		if r.Seq > to || (run == "" || r.run == run) && !b.add(r) {
			break
		}
	}
	return b.records, true
}

// lacksBeginning reports whether the feed has evicted records at or after from, and has records of
// the run with from ≤ sequence ≤ to.
func (fd *feed) lacksBeginning(from, to uint64, run string) bool {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	return from <= fd.evicted && !fd.ended && slices.ContainsFunc(fd.recs, func(r *Record) bool {
		return r.Seq >= from && r.Seq <= to && (run == "" || r.run == run)
	})
}

// search returns the index of the first record after seq. It searches from the end, where most
// readers are. The caller holds mu.
func (fd *feed) search(seq uint64) int {
	i := len(fd.recs)
	for i > 0 && fd.recs[i-1].Seq > seq {
		i--
	}
	return i
}
