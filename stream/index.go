package stream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/durations"
)

// The index of threads is a bucket with one entry for each thread, so that threads can be listed.
// It is a cache of the log. An entry is about one record, and is written after that record. An
// attempt that finds the record written writes the entry again, so an attempt that died between the
// two leaves no gap. An entry never replaces one about a later record: writes are compare-and-swap
// on the key's revision.

// IndexEntry is the index's entry about a thread, as JSON.
type IndexEntry struct {
	ThreadID string `json:"threadId"`
	Agent    string `json:"agent"`
	// RunID is the ID of the last run as clients know it; "" = a fork without a run.
	RunID  string `json:"runId,omitempty"`
	Status Status `json:"status"`
	// CreatedAt is the time of the thread's first record. Later entries keep it.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// UpdatedAt is when the last run began or ended, or the thread was forked.
	UpdatedAt time.Time `json:"updatedAt"`
	// Seq is the sequence of the record that the entry is about. Changes of the entry alone, such
	// as those of SetPaused and Share, do not change it.
	Seq uint64 `json:"seq"`
	// WaitingFor has the kinds of the interrupts with which the last run ended, each once.
	WaitingFor []WaitKind `json:"waitingFor,omitempty"`
	// Usage is what the ended runs have used.
	Usage ThreadUsage `json:"usage,omitzero"`
	EntryContent
	// Tenant is the ID of the tenant if the key has only a digest of it; else "".
	Tenant string `json:"tenant,omitempty"`
	// Purged tells that the thread was removed. Later entries about its records are ignored.
	// Unfinished tells that the removal has begun, and may have been interrupted.
	Purged     bool `json:"purged,omitempty"`
	Unfinished bool `json:"unfinished,omitempty"`
}

// EntryContent is the part of an entry that is encrypted if the log has a Cipher.
type EntryContent struct {
	// Access is who may use the thread. Later entries keep it.
	Access
	Description
	// Retrying tells why the active run makes no progress; nil = no activity is retried. The next
	// entry about a record does not keep it.
	Retrying *Retrying `json:"retrying,omitempty"`
}

// storedEntry is an IndexEntry as the bucket has it. If the log has a Cipher, Encrypted is the
// EntryContent, and the entry itself has none.
type storedEntry struct {
	IndexEntry
	Encrypted json.RawMessage `json:"content,omitempty"`
}

// encodeEntry returns the value of a key of the index.
func (l *Log) encodeEntry(ctx context.Context, threadSubject, key string, entry *IndexEntry) ([]byte, error) {
	stored := storedEntry{IndexEntry: *entry}
	if l.cipher != nil && !entry.Purged {
		content, err := json.Marshal(entry.EntryContent)
		if err != nil {
			return nil, fmt.Errorf("stream: encode entry: %w", err)
		}
		if stored.Encrypted, err = l.encryptEntry(ctx, threadSubject, key, content); err != nil {
			return nil, err
		}
		stored.EntryContent = EntryContent{}
	}
	value, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("stream: encode entry: %w", err)
	}
	return value, nil
}

// IsEncryptedEntry reports whether DecodeEntry needs the key of the thread for a value of the index.
func IsEncryptedEntry(value []byte) bool { return bytes.Contains(value, encryptedEntryPrefix) }

// DecodeStatus returns the status of the thread in a value of the index, which is never encrypted. It
// returns "" if the thread was removed, or the value is invalid.
func DecodeStatus(value []byte) Status {
	var entry struct {
		Status Status `json:"status"`
		Purged bool   `json:"purged"`
	}
	if err := json.Unmarshal(value, &entry); err != nil || entry.Purged {
		return ""
	}
	return Status(strings.Clone(string(entry.Status)))
}

// DecodeEntry decodes the value of a key of the index. It retries during outages until ctx ends.
// Errors: ErrGone if the key of the thread was destroyed.
func (l *Log) DecodeEntry(ctx context.Context, key string, value []byte) (*IndexEntry, error) {
	var stored storedEntry
	if err := json.Unmarshal(value, &stored); err != nil {
		return nil, fmt.Errorf("stream: entry %s: %w", key, err)
	}
	if stored.Encrypted != nil {
		content, err := l.DecryptEntry(ctx, key, stored.Encrypted)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(content, &stored.EntryContent); err != nil {
			return nil, fmt.Errorf("stream: entry %s: %w", key, err)
		}
	}
	return &stored.IndexEntry, nil
}

const (
	indexBucket = "threads"
	// IndexPrefix begins the keys of entries: tenant and thread follow, each a token.
	IndexPrefix = "thread."
	// restoredKey exists if the bucket has an entry for every thread of the log. A new bucket does
	// not have it.
	restoredKey = "restored"
	// purgedTTL is how long an entry about a purge is kept: longer than any write that was in
	// flight.
	purgedTTL = 24 * time.Hour
	// markerTTL is how long the bucket keeps the marker of such an entry's expiry.
	markerTTL = time.Minute
)

// ensureIndex opens the bucket of the index. Markers let watchers see that an entry has expired.
func (l *Log) ensureIndex(ctx context.Context) (jetstream.KeyValue, error) {
	return l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: indexBucket, Description: "Perdure: index of threads", Storage: jetstream.FileStorage, LimitMarkerTTL: markerTTL,
	})
}

// Index returns the bucket of the index, for package internal/index/threads to watch.
func (l *Log) Index() jetstream.KeyValue { return l.index }

// indexKey returns the key of a thread, by its subject.
func (l *Log) indexKey(threadSubject string) string {
	return IndexPrefix + IndexToken(strings.TrimPrefix(threadSubject, l.prefix+"."))
}

// IndexToken returns a token in a key of the index. Keys of buckets must not have "~", which begins
// the tokens of long IDs.
func IndexToken(token string) string { return strings.ReplaceAll(token, "~", "=") }

// indexOpening writes the entry about a run that began with the record seq. seq 0 means that an
// earlier attempt has written the opening and that its sequence is unknown: the log is asked for
// it. description has what the run's input says of the thread.
func (l *Log) indexOpening(ctx context.Context, run Run, agent string, seq uint64, description Description) error {
	now := time.Now()
	if seq == 0 {
		rec, err := l.First(ctx, l.LaneSubject(run, LaneMain), 1)
		if err != nil || rec == nil {
			return err
		}
		seq, now = rec.Seq, rec.Time
	}
	return l.putEntry(ctx, l.ThreadSubject(run.Thread), &IndexEntry{
		ThreadID: run.Thread.ID, Agent: agent, RunID: run.Shown(), Status: StatusRunning, UpdatedAt: now, Seq: seq,
		EntryContent: EntryContent{Description: description},
	})
}

// indexNewEnd writes the entry about the end of a run whose terminal record was just written, with
// these events.
func (l *Log) indexNewEnd(ctx context.Context, p Place, seq uint64, events []agui.Event) error {
	var last agui.Event
	if len(events) > 0 {
		last = events[len(events)-1]
	}
	return l.putEndEntry(ctx, p.Run, last, &IndexEntry{Agent: p.Agent, UpdatedAt: time.Now(), Seq: seq})
}

// indexExistingEnd writes the entry about the end of a run whose terminal record exists: an earlier
// attempt may have died before it wrote the entry.
func (l *Log) indexExistingEnd(ctx context.Context, run Run, end *Record) error {
	last, err := end.LastEvent(ctx)
	if err != nil {
		return err
	}
	agent, err := end.finalAgent(ctx)
	if err != nil {
		return err
	}
	return l.putEndEntry(ctx, run, last, &IndexEntry{Agent: agent, UpdatedAt: end.Time, Seq: end.Seq})
}

// putEndEntry completes and writes an entry about the end of a run with its last event.
func (l *Log) putEndEntry(ctx context.Context, run Run, last agui.Event, entry *IndexEntry) error {
	entry.ThreadID, entry.RunID, entry.Status = run.Thread.ID, run.Shown(), StatusAfter(last)
	entry.WaitingFor, entry.Usage = waitsAfter(last), usageIn(last)
	return l.putEntry(ctx, l.ThreadSubject(run.Thread), entry)
}

// indexFork writes the entry about a thread that begins with a fork record, of that time and
// sequence.
func (l *Log) indexFork(ctx context.Context, t Thread, at time.Time, seq uint64, agent string) error {
	return l.putEntry(ctx, l.ThreadSubject(t), &IndexEntry{ThreadID: t.ID, Agent: agent, Status: StatusIdle, UpdatedAt: at, Seq: seq})
}

// SetPaused sets the status of a run that was paused, or resumed. It does nothing if the index has
// a later run of the thread, or the end of this run. If the index does not have the run yet, it
// waits for the entry until ctx ends, and then returns nil without a change.
func (l *Log) SetPaused(ctx context.Context, run Run, paused bool) error {
	from, to := StatusRunning, StatusPaused
	if !paused {
		from, to = to, from
	}
	key := l.indexKey(l.ThreadSubject(run.Thread))
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		entry, revision, err := l.readEntry(ctx, key)
		if err != nil {
			return err
		}
		if entry.RunID != run.Shown() {
			opening, err := l.First(ctx, l.LaneSubject(run, LaneMain), 1)
			if err != nil || opening != nil && opening.Seq < entry.Seq {
				return err
			}
			select {
			case <-time.After(pause):
				continue
			case <-ctx.Done():
				return nil
			}
		}
		if entry.Status != from {
			return nil
		}
		entry.Status = to
		if err := l.replaceEntry(ctx, run.Thread, &entry, revision); err == nil || isPermanent(err) {
			return err
		}
		if err := durations.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// IsPaused reports whether the index lists the run with an ID as paused.
func (e *IndexEntry) IsPaused(runID string) bool {
	return e.RunID == ShownRunID(runID) && e.Status == StatusPaused
}

// putEntry writes an entry, unless the index has one about a later record. An entry without an
// agent gets that of its run (agentOf). Like append it retries during outages, until ctx ends.
func (l *Log) putEntry(ctx context.Context, threadSubject string, entry *IndexEntry) error {
	entry.UpdatedAt = entry.UpdatedAt.UTC().Truncate(time.Millisecond)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		listed, err := l.tryPutEntry(ctx, threadSubject, entry)
		if listed || err != nil && (!errors.Is(err, ErrUnavailable) || isPermanent(err)) {
			return err
		}
		if err := durations.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// tryPutEntry is one try of putEntry. It returns true if the entry was written or is not needed,
// and with an error that is permanent. It returns false without an error if the write was refused
// or its outcome is unknown: putEntry then tries again. It does not change its argument.
func (l *Log) tryPutEntry(ctx context.Context, threadSubject string, about *IndexEntry) (bool, error) {
	key := l.indexKey(threadSubject)
	current, revision, err := l.readEntry(ctx, key)
	if err != nil || !about.replaces(&current) {
		return err == nil, err
	}
	next := *about
	entry := &next
	if entry.Agent == "" && !entry.Purged {
		if entry.Agent, err = l.agentOf(ctx, &current, entry); err != nil {
			return false, err
		}
	}
	switch {
	case entry.Purged: // nobody may use the thread, and its content must be gone
	case current.Seq > 0 && !current.Purged:
		entry.keep(&current)
	default:
		if err := l.beginEntry(ctx, threadSubject, entry); err != nil {
			return false, err
		}
	}
	value, err := l.encodeEntry(ctx, threadSubject, key, entry)
	if err != nil {
		return false, err
	}
	msg := nats.NewMsg(l.indexSubject(key))
	msg.Data = value
	if entry.Purged && !entry.Unfinished {
		msg.Header.Set(jetstream.MsgTTLHeader, purgedTTL.String())
	}
	_, err = l.publish(ctx, msg, revision)
	if err != nil && isPermanent(err) {
		return true, fmt.Errorf("stream: list thread: %w", err)
	}
	return err == nil, nil
}

// keep takes over from the entry before what the entry's own record does not tell.
func (e *IndexEntry) keep(current *IndexEntry) {
	e.Access, e.Tenant, e.CreatedAt = current.Access, current.Tenant, current.CreatedAt
	e.Description = current.Description.updated(e.Description)
	e.Usage = current.Usage.plus(e.Usage)
}

// replaces reports whether an entry is newer than the listed one. The entries about a purge have the
// sequence of the thread's last record, and replace the entry about that record.
func (e *IndexEntry) replaces(current *IndexEntry) bool {
	ends := e.Purged && (!current.Purged || current.Unfinished && !e.Unfinished)
	return e.Seq > current.Seq || e.Seq == current.Seq && ends
}

// indexSubject returns the subject of a key of the index (ADR-8).
func (l *Log) indexSubject(key string) string { return "$KV." + l.index.Bucket() + "." + key }

// readEntry asks the leader for an entry and its revision. Without an entry the revision is 0,
// which as an expected sequence means that the key must not exist.
func (l *Log) readEntry(ctx context.Context, key string) (current IndexEntry, revision uint64, err error) {
	m, err := l.askStream(ctx, "KV_"+l.index.Bucket(), getRequest{LastFor: l.indexSubject(key)})
	if err != nil || m == nil {
		return current, 0, err
	}
	if len(m.Data) == 0 { // the marker of an entry that has expired
		return current, m.Seq, nil
	}
	entry, err := l.DecodeEntry(ctx, key, m.Data)
	if err != nil {
		return current, 0, err
	}
	return *entry, m.Seq, nil
}

// agentOf finds the agent of a run that ends: in the listed entry if that is about the run, else in
// the run's opening. "" = the log has neither.
func (l *Log) agentOf(ctx context.Context, current, entry *IndexEntry) (string, error) {
	if current.RunID == entry.RunID && current.Agent != "" {
		return current.Agent, nil
	}
	end, err := l.At(ctx, entry.Seq)
	if err != nil || end == nil {
		return "", err
	}
	opening, err := l.First(ctx, end.thread+"."+end.run+"."+string(LaneMain), 1)
	if err != nil || opening == nil || !opening.OpensRun() {
		return "", err
	}
	var o Opening
	if err := opening.Result(ctx, &o); err != nil {
		return "", err
	}
	return o.Agent, nil
}

// RestoreIndex writes the index from the log if the bucket is new, else it does nothing. Several
// processes may do so concurrently, also while runs write. It reads the main lanes of all runs of
// all tenants, and the titles that models have written, and keeps one entry for each thread in
// memory. A process that dies in it leaves no restoredKey, so the next one begins again.
func (l *Log) RestoreIndex(ctx context.Context) error {
	_, err := l.index.Get(ctx, restoredKey)
	if !errors.Is(err, jetstream.ErrKeyNotFound) {
		return err
	}
	all := map[string]*restoredThread{}
	for rec, err := range l.recordsUnder(ctx, l.prefix+".*.*.*."+string(LaneMain)) {
		if err != nil {
			return err
		}
		if all[rec.thread] == nil {
			all[rec.thread] = &restoredThread{}
		}
		if err := all[rec.thread].add(ctx, l, rec); errors.Is(err, ErrGone) {
			all[rec.thread].entry.Seq = 0 // the thread is being purged
		} else if err != nil {
			return fmt.Errorf("stream: restore index: %w", err)
		}
	}
	if err := l.restoreModelTitles(ctx, all); err != nil {
		return err
	}
	for subject, thread := range all {
		if thread.entry.Seq == 0 { // the thread has no run
			continue
		}
		if err := l.putEntry(ctx, subject, &thread.entry); err != nil {
			return err
		}
	}
	_, err = l.index.PutString(ctx, restoredKey, l.epoch)
	return err
}

// restoreModelTitles adds the titles that models have written to the entries of their threads.
func (l *Log) restoreModelTitles(ctx context.Context, all map[string]*restoredThread) error {
	for rec, err := range l.recordsUnder(ctx, l.prefix+".*.*.*."+string(LaneTitle)) {
		if err != nil {
			return err
		}
		thread := all[rec.thread]
		if rec.Kind != KindDone || thread == nil {
			continue
		}
		var result Result
		if err := rec.Result(ctx, &result); err != nil && !errors.Is(err, ErrGone) {
			return fmt.Errorf("stream: restore index: %w", err)
		}
		thread.entry.ModelTitle = result.Title
	}
	return nil
}

// restoredThread is the entry of a thread while RestoreIndex reads the log.
type restoredThread struct {
	entry IndexEntry
	run   string // token of the last run that began
}

// add adds the thread's next record of a main lane.
func (r *restoredThread) add(ctx context.Context, l *Log, rec *Record) error {
	switch {
	case rec.OpensRun():
		var o Opening
		if err := rec.Result(ctx, &o); err != nil {
			return err
		}
		id, err := rec.threadID(ctx)
		if err != nil {
			return err
		}
		r.run = rec.run
		next := IndexEntry{ThreadID: id, Agent: o.Agent, RunID: ShownRunID(o.RunID), Status: StatusRunning, UpdatedAt: rec.Time, Seq: rec.Seq}
		if o.Input > 0 {
			in, err := l.Input(ctx, o.Input)
			if err != nil && !errors.Is(err, ErrLogLost) {
				return err
			}
			if err == nil {
				next.Description = in.Description()
			}
		}
		next.keep(&r.entry)
		r.entry = next
	case rec.Kind == KindFork:
		var note Fork
		if err := rec.Result(ctx, &note); err != nil {
			return err
		}
		r.entry = IndexEntry{ThreadID: note.Thread, Agent: note.Agent(), Status: StatusIdle, UpdatedAt: rec.Time, Seq: rec.Seq}
	case rec.Kind == KindTerminal && rec.run == r.run:
		last, err := rec.LastEvent(ctx)
		if err != nil {
			return err
		}
		agent, err := rec.finalAgent(ctx)
		r.entry.Agent = cmp.Or(agent, r.entry.Agent)
		r.entry.Status, r.entry.UpdatedAt, r.entry.Seq = StatusAfter(last), rec.Time, rec.Seq
		r.entry.WaitingFor, r.entry.Usage = waitsAfter(last), r.entry.Usage.plus(usageIn(last))
		return err
	}
	return nil
}
