package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrBehind: the reader is slower than the log and what it lacks has left the memory of this node.
// Nothing is lost: a new reader with the last cursor reads on from the log.
var ErrBehind = errors.New("stream: the reader has fallen behind")

// Bounds of what a node keeps of a followed thread for readers that lag.
const (
	feedRecords = 1024
	feedBytes   = 4 << 20
)

// Follower reads the log once for all readers of a process: one consumer, whatever the number of
// runs, whose records go to the feeds of the threads that have readers here. Records of other threads
// are dropped unparsed. A consumer that breaks is replaced by one that begins where it ended.
//
//	JetStream ──one consumer──► Follower ──► feed of a thread ──► reader, reader, …
//	JetStream ──direct get of what lies behind────────────────────────┘ spliced by sequence
type Follower struct {
	log  *Log
	stop context.CancelFunc
	done chan struct{} // closed when it has stopped

	mu    sync.Mutex
	feeds map[string]*feed // by thread subject
	at    uint64           // every record up to here has gone to its feed
	ended bool
}

// Follow starts a follower. Stop must be called.
func (l *Log) Follow(ctx context.Context) (*Follower, error) {
	s, err := l.js.Stream(ctx, l.name)
	if err != nil {
		return nil, fmt.Errorf("stream: follow: %w", err)
	}
	f := &Follower{log: l, done: make(chan struct{}), feeds: map[string]*feed{}, at: s.CachedInfo().State.LastSeq}
	first, err := l.consume(ctx, f.at, f.deliver)
	if err != nil {
		return nil, fmt.Errorf("stream: follow: %w", err)
	}
	var live context.Context
	live, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	go f.run(live, first)
	return f, nil
}

// Stop ends the follower and waits for it, which takes no time, even if the log is away. Its readers
// end with ErrBehind, which tells clients to come back with their cursor.
func (f *Follower) Stop() {
	f.stop()
	<-f.done
}

// run replaces the consumer whenever it breaks, until the follower is stopped or the connection ends.
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

func (f *Follower) position() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

func (f *Follower) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for _, feed := range f.feeds {
		feed.end()
	}
}

// deliver hands one record on. It runs in the consumer's goroutine, record after record.
func (f *Follower) deliver(msg jetstream.Msg, meta *jetstream.MsgMetadata) {
	seq := meta.Sequence.Stream
	thread, _, lane, ok := splitSubject(msg.Subject())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = seq
	feed := f.feeds[thread]
	if !ok || feed == nil || lane.IsProposal() {
		return
	}
	r, err := decodeRecord(f.log, msg.Subject(), seq, meta.Timestamp, msg.Headers().Get(header), msg.Data())
	if err != nil {
		feed.end() // not to be shown as if it were whole; readers find the same when they come back
		return
	}
	feed.push(r)
}

// attach returns the thread's feed and the position of the follower: every record of the thread
// behind it goes to the feed.
func (f *Follower) attach(t Thread) (fd *feed, at uint64) {
	key := f.log.threadSubject(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	fd = f.feeds[key]
	if fd == nil {
		fd = &feed{ended: f.ended, evicted: f.at}
		f.feeds[key] = fd
	}
	fd.readers++
	return fd, f.at
}

func (f *Follower) detach(t Thread, fd *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd.readers--
	if fd.readers == 0 {
		delete(f.feeds, f.log.threadSubject(t))
	}
}

// held returns what the feed has of a run, or of all runs, from one sequence to another, and the
// sequence behind which it has everything; nothing if it has not got so far.
func (f *Follower) held(fd *feed, run string, from, to uint64) (found []*Record, behind uint64) {
	f.mu.Lock()
	reached := f.at
	f.mu.Unlock()
	fd.mu.Lock()
	defer fd.mu.Unlock()
	if reached < to || fd.ended {
		return nil, 0
	}
	for _, r := range fd.recs {
		if r.Seq >= from && r.Seq <= to && (run == "" || r.run == run) {
			found = append(found, r)
		}
	}
	return found, fd.evicted
}

// Tail reads the records of one run, or of all runs of a thread: those of the log up to now, then live.
// It is used by one goroutine. Close must be called.
type Tail struct {
	follower *Follower
	feed     *feed
	thread   Thread
	token    string // of the run; empty = all
	subject  string
	idle     *time.Timer
	at       uint64 // every record up to here has been returned
}

// Tail attaches to a run. What is written from now on can't be missed, so attach before starting
// what is to be seen.
func (f *Follower) Tail(run Run) *Tail {
	return f.tail(run.Thread, Token(run.ID), f.log.runSubject(run)+".>")
}

func (f *Follower) tail(thread Thread, token, subject string) *Tail {
	fd, at := f.attach(thread)
	t := &Tail{follower: f, feed: fd, thread: thread, token: token, subject: subject, idle: time.NewTimer(time.Hour), at: at}
	t.idle.Stop()
	return t
}

// Close ends the reader.
func (t *Tail) Close() {
	t.idle.Stop()
	t.follower.detach(t.thread, t.feed)
}

// Past yields the records that the log has by now, proposals left out, from a sequence on. It is
// called once, before Next; where the run is known to be new it can be left out. The leader is asked
// for the last record after the feed was attached: all that comes behind it arrives by the feed.
func (t *Tail) Past(ctx context.Context, from uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		last, err := t.follower.log.last(ctx, t.subject)
		if err != nil {
			yield(nil, err)
			return
		}
		if last == nil {
			return
		}
		for r, err := range t.between(ctx, from, last.Seq) {
			if !yield(r, err) || err != nil {
				return
			}
		}
		t.at = max(t.at, last.Seq)
	}
}

// between yields the records from one sequence to another, that of a record that exists, proposals
// left out. Where the feed has them all, since others here were there from the beginning, the log is
// asked only where they begin: thousands who come at once would each have it read everything.
func (t *Tail) between(ctx context.Context, from, to uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		if held, behind := t.follower.held(t.feed, t.token, from, to); len(held) > 0 {
			first, err := t.follower.log.first(ctx, t.subject, from)
			if err != nil {
				yield(nil, err)
				return
			}
			if first != nil && first.Seq > behind {
				for _, r := range held {
					if !yield(r, nil) {
						return
					}
				}
				return
			}
		}
		for r, err := range t.follower.log.records(ctx, t.subject, from, to) {
			if err == nil && r.Lane.IsProposal() {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// Next returns the records that follow, at least one, or none after idle has passed without any. It
// fails with ErrBehind when the reader was too slow, and with ctx's cause.
func (t *Tail) Next(ctx context.Context, idle time.Duration) ([]*Record, error) {
	t.idle.Reset(idle)
	for {
		recs, at, changed, err := t.feed.after(t.at, t.token)
		if err != nil {
			return nil, err
		}
		t.at = at
		if len(recs) > 0 {
			return recs, nil
		}
		select {
		case <-changed:
		case <-t.idle.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// feed is the recent past of one thread, shared by its readers: a writer never waits for them.
type feed struct {
	readers int // guarded by Follower.mu

	mu      sync.Mutex
	recs    []*Record
	bytes   int
	evicted uint64 // up to here records had to go, or came before the feed
	ended   bool
	changed chan struct{} // closed and replaced when something arrives; nil while nobody waits
}

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

func (fd *feed) end() {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	fd.ended = true
	fd.wake()
}

func (fd *feed) wake() {
	if fd.changed != nil {
		close(fd.changed)
		fd.changed = nil
	}
}

// after returns the records of a run, or of all, behind a sequence and the sequence they reach, or a channel
// that is closed when more of the thread arrive.
func (fd *feed) after(seq uint64, run string) (found []*Record, at uint64, changed <-chan struct{}, err error) {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	if seq < fd.evicted {
		return nil, seq, nil, ErrBehind
	}
	at = seq
	for _, r := range fd.recs[fd.search(seq):] {
		at = r.Seq
		if run == "" || r.run == run {
			found = append(found, r)
		}
	}
	if len(found) > 0 {
		return found, at, nil, nil
	}
	if fd.ended {
		return nil, at, nil, ErrBehind
	}
	if fd.changed == nil {
		fd.changed = make(chan struct{})
	}
	return nil, at, fd.changed, nil
}

// search returns the index of the first record behind seq. A reader is near the end as a rule.
func (fd *feed) search(seq uint64) int {
	i := len(fd.recs)
	for i > 0 && fd.recs[i-1].Seq > seq {
		i--
	}
	return i
}
