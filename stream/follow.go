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

// ErrInterrupted reports that the node follows the log no more, or cannot read a record that came. Nothing is lost: a new
// reader with the last cursor continues, here or on another node.
var ErrInterrupted = errors.New("stream: the node does not follow the log any more")

// Bounds of what a node keeps of a followed thread for its readers. A reader that lags further reads the log.
const (
	feedRecords = 1024
	feedBytes   = 4 << 20
)

// logReads bounds how many readers of a node read the log at a time. Each holds its place for one part, never while its
// client takes that.
const logReads = 32

// Follower reads the log once for all readers of a process: one consumer, whatever the number of
// runs, whose records go to the feeds of the threads that have readers here. Records of other threads
// are dropped unparsed. A consumer that breaks is replaced by one that begins where it ended.
//
//	JetStream ──one consumer──► Follower ──► feed of a thread ──► reader, reader, …
//	JetStream ──direct get of the past, and of what has left the feed ──┘ spliced by sequence
//
// A reader holds one part of the records at a time, whether it lags or not: see partBytes.
type Follower struct {
	log   *Log
	stop  context.CancelFunc
	done  chan struct{} // closed when it has stopped
	reads chan struct{} // has an entry for each reader that reads the log now

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
	f := &Follower{
		log: l, done: make(chan struct{}), reads: make(chan struct{}, logReads),
		feeds: map[string]*feed{}, at: s.CachedInfo().State.LastSeq,
	}
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
// end with ErrInterrupted, which tells clients to come back with their cursor.
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
	key := f.log.ThreadSubject(t)
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
		delete(f.feeds, f.log.ThreadSubject(t))
	}
}

// part reads a part of the log as Log.part does, when its turn has come.
func (f *Follower) part(ctx context.Context, subject string, from, to uint64) ([]*Record, error) {
	select {
	case f.reads <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-f.reads }()
	return f.log.part(ctx, subject, from, to)
}

// reached reports whether all records up to one have gone to their feeds.
func (f *Follower) reached(seq uint64) bool { return f.position() >= seq }

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

// Log is the log that is followed.
func (f *Follower) Log() *Log { return f.log }

// Tail attaches to a run. What is written from now on can't be missed, so attach before starting
// what is to be seen.
func (f *Follower) Tail(run Run) *Tail {
	return f.tail(run.Thread, Token(run.ID), f.log.RunSubject(run)+".>")
}

// ThreadTail attaches to all runs of a thread.
func (f *Follower) ThreadTail(thread Thread) *Tail {
	return f.tail(thread, "", f.log.ThreadSubject(thread)+".>")
}

func (f *Follower) tail(thread Thread, token, subject string) *Tail {
	fd, at := f.attach(thread)
	t := &Tail{follower: f, feed: fd, thread: thread, token: token, subject: subject, idle: time.NewTimer(time.Hour), at: at}
	t.idle.Stop()
	return t
}

// At is the sequence up to which every record has been returned.
func (t *Tail) At() uint64 { return t.at }

// Log is the log that is read.
func (t *Tail) Log() *Log { return t.follower.log }

// Has reports whether a record belongs to the run, or the thread, that is read.
func (t *Tail) Has(r *Record) bool {
	return r.OfThread(t.thread) && (t.token == "" || r.run == t.token)
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
		t.at = max(t.at, last.Seq)
	}
}

// Between yields the records from one sequence to another, that of a record that exists, proposals left out. What the
// feed has comes from there: thousands of readers that come at once would otherwise each have the log read.
func (t *Tail) Between(ctx context.Context, from, to uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		from, err := t.skipTo(ctx, from, to)
		for err == nil && from <= to {
			var part []*Record
			if part, err = t.partOf(ctx, from, to); err != nil {
				break
			}
			from = to + 1 // the feed has no more of the run up to there
			for _, r := range part {
				from = r.Seq + 1
				if !r.Lane.IsProposal() && !yield(r, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// skipTo returns where records begin that are to be read from one sequence to another, if the feed has some of them: then
// it may have them all.
func (t *Tail) skipTo(ctx context.Context, from, to uint64) (uint64, error) {
	if !t.follower.reached(to) || !t.feed.begins(from, to, t.token) {
		return from, nil
	}
	first, err := t.follower.log.First(ctx, t.subject, from)
	if err != nil || first == nil {
		return from, err
	}
	return max(from, first.Seq), nil
}

// partOf returns the next records from one sequence to another, of the feed or of the log. Of the feed it may be none.
func (t *Tail) partOf(ctx context.Context, from, to uint64) ([]*Record, error) {
	if t.follower.reached(to) {
		if found, ok := t.feed.part(from, to, t.token); ok {
			return found, nil
		}
	}
	return t.follower.part(ctx, t.subject, from, to)
}

// Next returns the records that follow, at least one, or none after idle has passed without any. A reader that is slower
// than the log gets them from there, and is back at the feed when it has caught up. It fails with ErrInterrupted,
// ErrGone if the thread was purged before the reader had got all of it, failures of the log, and with ctx's cause.
func (t *Tail) Next(ctx context.Context, idle time.Duration) ([]*Record, error) {
	t.idle.Reset(idle)
	for {
		found, err := t.feed.after(t.at, t.token)
		if err == nil && found.evicted > t.at {
			found, err = t.catchUp(ctx, found.evicted)
		}
		if err != nil {
			return nil, err
		}
		t.at = found.at
		if len(found.records) > 0 {
			return found.records, nil
		}
		select {
		case <-found.changed:
		case <-found.again:
		case <-t.idle.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// catchUp reads the next part of the records that the reader lacks and that have left the feed. evicted, the last of them, is a
// record of the thread but not always of the run, so catchUp reads the thread. While the log is out of reach the reader waits,
// as it would at the feed.
func (t *Tail) catchUp(ctx context.Context, evicted uint64) (news, error) {
	part, err := t.follower.part(ctx, t.follower.log.ThreadSubject(t.thread)+".>", t.at+1, evicted)
	if errors.Is(err, ErrUnavailable) && !hopeless(err) && ctx.Err() == nil {
		return news{at: t.at, again: time.After(longestPause)}, nil
	}
	if err != nil {
		return news{}, err
	}
	found := news{at: t.at, again: atOnce}
	for _, r := range part {
		found.at = r.Seq
		if !r.Lane.IsProposal() && (t.token == "" || r.run == t.token) {
			found.records = append(found.records, r)
		}
	}
	return found, nil
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

// news is what comes after a sequence.
type news struct {
	records []*Record
	at      uint64 // the sequence that they reach
	evicted uint64 // not 0: the feed lacks records up to here
	// changed is closed when more of the thread arrive, again tells when to look again. One of them is nil.
	changed <-chan struct{}
	again   <-chan time.Time
}

// atOnce tells to look again at once.
var atOnce = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// after returns the next records of a run, or of all, after a sequence: a part of them.
func (fd *feed) after(seq uint64, run string) (news, error) {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	if seq < fd.evicted {
		return news{at: seq, evicted: fd.evicted}, nil
	}
	found := news{at: seq}
	var p part
	for _, r := range fd.recs[fd.search(seq):] {
		if (run == "" || r.run == run) && !p.add(r) {
			break
		}
		found.at = r.Seq
	}
	if found.records = p.records; len(found.records) > 0 {
		return found, nil
	}
	if fd.ended {
		return found, ErrInterrupted
	}
	if fd.changed == nil {
		fd.changed = make(chan struct{})
	}
	found.changed = fd.changed
	return found, nil
}

// part returns the next records of a run, or of all, from one sequence to another; ok is false if the feed lacks some.
func (fd *feed) part(from, to uint64, run string) (found []*Record, ok bool) {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	if from <= fd.evicted || fd.ended {
		return nil, false
	}
	var p part
	for _, r := range fd.recs[fd.search(from-1):] {
		if r.Seq > to || (run == "" || r.run == run) && !p.add(r) {
			break
		}
	}
	return p.records, true
}

// begins reports whether the feed lacks records from one sequence on, and has later ones of a run, or of any, up to another.
func (fd *feed) begins(from, to uint64, run string) bool {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	return from <= fd.evicted && !fd.ended && slices.ContainsFunc(fd.recs, func(r *Record) bool {
		return r.Seq >= from && r.Seq <= to && (run == "" || r.run == run)
	})
}

// search returns the index of the first record behind seq. A reader is near the end as a rule.
func (fd *feed) search(seq uint64) int {
	i := len(fd.recs)
	for i > 0 && fd.recs[i-1].Seq > seq {
		i--
	}
	return i
}
