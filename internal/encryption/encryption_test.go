package encryption_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"
	"gocloud.dev/secrets/localsecrets"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/encryption"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamtest.Leaks()) }

// operatorKey returns a key of the operator; equal IDs name equal keys.
func operatorKey(id string) encryption.OperatorKey {
	var key [32]byte
	copy(key[:], id)
	return encryption.OperatorKey{ID: id, Keeper: localsecrets.NewKeeper(key)}
}

// open opens a log with operator's keys on a server, as another process would.
func open(t *testing.T, s *server.Server, ids ...string) *stream.Log {
	t.Helper()
	var o stream.Options
	if len(ids) > 0 {
		var operators []encryption.OperatorKey
		for _, id := range ids {
			operators = append(operators, operatorKey(id))
		}
		o.Cipher = encryption.Cipher(operators)
	}
	l, err := stream.Open(t.Context(), streamtest.Connect(t, s), o)
	if err != nil {
		t.Fatalf("open log: %v", err)
	}
	return l
}

// keysOf opens the keys of a log, as the command that rotates them does.
func keysOf(t *testing.T, s *server.Server, ids ...string) *encryption.Keys {
	t.Helper()
	var operators []encryption.OperatorKey
	for _, id := range ids {
		operators = append(operators, operatorKey(id))
	}
	k, err := encryption.Open(t.Context(), open(t, s), operators)
	if err != nil {
		t.Fatalf("open keys: %v", err)
	}
	return k
}

var (
	thread = stream.Thread{Tenant: "acme", ID: "thread-1"}
	run    = stream.Run{Thread: thread, ID: "run-1"}
)

const secret = "the-secret-of-the-thread"

// ask writes the first input of a run; it begins the thread if it has no records.
func ask(t *testing.T, l *stream.Log, run stream.Run, text string) uint64 {
	t.Helper()
	question := agui.Message{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent(text)}
	in := &stream.Input{Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: "u1", Message: &question}}}}
	propose := l.ProposeInput
	if has, err := l.HasThread(t.Context(), run.Thread); err != nil {
		t.Fatal(err)
	} else if !has {
		propose = l.ProposeFirstInput
	}
	p, err := propose(t.Context(), run, question.Digest(), in)
	if err != nil {
		t.Fatalf("propose: %v", err)
	}
	return p.Seq
}

// text returns the text of an input.
func text(t *testing.T, l *stream.Log, seq uint64) (string, error) {
	t.Helper()
	in, err := l.Input(t.Context(), seq)
	if err != nil {
		return "", err
	}
	return in.Accepted.Tail[0].Message.Content.Text(), nil
}

// wantText checks the text of an input.
func wantText(t *testing.T, when string, l *stream.Log, seq uint64, want string) {
	t.Helper()
	if got, err := text(t, l, seq); got != want || err != nil {
		t.Errorf("%s: input %d: got %.40q, %v, want %.40q", when, seq, got, err, want)
	}
}

// search returns the files under a directory that contain one of the texts.
func search(t *testing.T, dir string, texts ...string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) {
				found = append(found, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// describe begins the run, and gives its thread a title, metadata and the reason of a retry with the
// secret, in the entry of the index.
func describe(t *testing.T, l *stream.Log, input uint64) {
	t.Helper()
	ctx, place := t.Context(), stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	if _, err := snapshot.NewStore(l).OpenRun(ctx, place, stream.Opening{Agent: "a", Input: input}); err != nil {
		t.Fatal(err)
	}
	entry, err := l.Entry(ctx, thread)
	if err != nil || entry.DerivedTitle != secret {
		t.Fatalf("entry of the thread: got %+v, %v, want the title %q", entry, err, secret)
	}
	_, titleErr := l.SetTitle(ctx, thread, "about "+secret)
	_, metadataErr := l.SetMetadata(ctx, thread, map[string]string{"note": secret})
	retryErr := l.SetRetrying(ctx, run, stream.Retrying{Step: "1/model", Error: secret})
	if err := errors.Join(titleErr, metadataErr, retryErr); err != nil {
		t.Fatal(err)
	}
	entry, err = l.Entry(ctx, thread)
	if err != nil || entry.Title() != "about "+secret || entry.Metadata["note"] != secret || entry.Retrying == nil || entry.Retrying.Error != secret {
		t.Fatalf("entry of the thread: got %+v, %v, want the secret in all of its content", entry, err)
	}
}

// TestStoredContentIsEncrypted: the files of the server have no content of a thread, neither small
// records nor blobs. Another process reads both.
func TestStoredContentIsEncrypted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := streamtest.ServerAt(t, dir)
	l := open(t, s, "a")
	small := ask(t, l, run, secret)
	large := secret + strings.Repeat("x", 2*stream.MaxLine) + secret
	blob := ask(t, l, stream.Run{Thread: thread, ID: "run-2"}, large)
	describe(t, l, small)
	elsewhere := open(t, s, "a")
	wantText(t, "another process", elsewhere, small, secret)
	wantText(t, "another process", elsewhere, blob, large)
	s.Shutdown()
	s.WaitForShutdown()
	if found := search(t, dir, secret, base64.StdEncoding.EncodeToString([]byte(secret))); found != nil {
		t.Errorf("the secret is in %v", found)
	}
	if found := search(t, dir, "acme.thread-1"); found == nil {
		t.Error("the subject is in no file: the search finds nothing")
	}
}

// TestPurgedTitleStaysUnreadable: NATS may keep the bytes of a replaced entry of the index in its
// files. After the purge of its thread nobody can decrypt the title and the metadata in them.
func TestPurgedTitleStaysUnreadable(t *testing.T) {
	t.Parallel()
	ctx, l := t.Context(), open(t, streamtest.Server(t), "a")
	describe(t, l, ask(t, l, run, secret))
	key := stream.IndexPrefix + stream.IndexToken(stream.Token(thread.Tenant)+"."+stream.Token(thread.ID))
	stored, err := l.Index().Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if entry, err := l.DecodeEntry(ctx, key, stored.Value()); err != nil || entry.Title() != "about "+secret {
		t.Fatalf("entry before the purge: got %+v, %v, want the title", entry, err)
	}
	if err := snapshot.NewStore(l).Purge(ctx, thread); err != nil {
		t.Fatal(err)
	}
	if entry, err := l.DecodeEntry(ctx, key, stored.Value()); !errors.Is(err, stream.ErrGone) {
		t.Errorf("entry after the purge: got %+v, %v, want ErrGone", entry, err)
	}
}

// TestEntriesAreEncrypted: the files have neither the arguments of an open interrupt, nor its event,
// nor who may use a thread, nor a checkpoint. The indexes of another process have them, and lose them
// when the thread is purged.
func TestEntriesAreEncrypted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := streamtest.ServerAt(t, dir)
	l, elsewhere := open(t, s, "a"), open(t, s, "a")
	ctx := t.Context()
	input := ask(t, l, run, secret+strings.Repeat("x", 100_000))
	place := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1", Execution: "e"}
	opened, err := l.OpenStep(ctx, place, stream.Opening{RunID: run.ID, Input: input, ProtocolVersion: "1.0"}, &agui.RunStarted{ThreadID: thread.ID, RunID: run.ID})
	if err != nil {
		t.Fatal(err)
	}
	place.After = opened
	if _, _, err := l.Seal(ctx, place, &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Share(ctx, thread, []stream.Share{{Subject: secret, Access: stream.AccessRead}}); err != nil {
		t.Fatal(err)
	}
	snapshots := snapshot.NewStore(l)
	snap, err := snapshots.Latest(ctx, thread, 0)
	if err == nil {
		err = snapshots.FinalCheckpoint(ctx, thread, snap)
	}
	if err != nil {
		t.Fatal(err)
	}
	store, err := inbox.Open(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	approval := inbox.Approval{ID: "int_1", ThreadID: thread.ID, RunID: run.ID, Args: []byte(`{"x":"` + secret + `"}`), RequestedAt: time.Now()}
	event := &inbox.Event{Type: inbox.Opened, At: time.Now(), Approval: approval}
	if err := errors.Join(store.Put(ctx, thread.Tenant, &approval, event.At), store.Record(ctx, thread.Tenant, "event", event), l.AppendAudit(ctx, run, "event", inbox.Entry{Tenant: thread.Tenant, Event: *event})); err != nil {
		t.Fatal(err)
	}

	other, err := inbox.Open(ctx, elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	open, err := other.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Stop()
	list, err := threads.Watch(ctx, elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Stop()
	if e, err := other.Event(ctx, thread.Tenant, "event"); err != nil || !bytes.Contains(e.Approval.Args, []byte(secret)) {
		t.Errorf("event: got %+v, %v", e, err)
	}
	if page, err := open.List(thread.Tenant, inbox.Filter{}, "", 10); err != nil || len(page.Items) != 1 || !bytes.Contains(page.Items[0], []byte(secret)) {
		t.Errorf("open interrupts: got %+v, %v", page, err)
	}
	if access, ok := list.AccessTo(thread); !ok || access.Decode().Shares[0].Subject != secret {
		t.Errorf("access: got %+v, %t", access, ok)
	}
	if info, err := l.Blobs().GetInfo(ctx, "checkpoint.perdure.acme.thread-1"); err != nil || info.Size < 100_000 {
		t.Errorf("checkpoint: got %+v, %v", info, err)
	}
	if err := store.Put(ctx, thread.Tenant, &approval, time.Now().Add(time.Second)); err != nil {
		t.Errorf("a later event: %v", err)
	}
	if err := errors.Join(store.Purge(ctx, thread), snapshots.Purge(ctx, thread)); err != nil {
		t.Fatal(err)
	}
	for changed := list.Changed(); ; changed = list.Changed() {
		if _, ok := list.AccessTo(thread); !ok {
			break
		}
		<-changed
	}
	s.Shutdown()
	s.WaitForShutdown()
	if found := search(t, dir, secret, base64.StdEncoding.EncodeToString([]byte(secret))); found != nil {
		t.Errorf("the secret is in %v", found)
	}
}

// TestPurgeDestroysKey: after a purge nothing of the thread can be read, also by a process that had
// the key in memory, and the files do not have the key. A thread with the same ID begins with
// another key.
func TestPurgeDestroysKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := streamtest.ServerAt(t, dir)
	l, elsewhere := open(t, s, "a"), open(t, s, "a")
	seq := ask(t, l, run, secret)
	wantText(t, "before the purge", elsewhere, seq, secret)
	known := keysOf(t, s, "a") // has the key in memory
	ciphertext, err := known.Encrypt(t.Context(), "acme.thread-1", []byte(secret), nil)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := l.ErasableBucket(t.Context(), "keys", "")
	if err != nil {
		t.Fatal(err)
	}
	entry, err := kv.Get(t.Context(), "thread.acme.thread-1")
	if err != nil {
		t.Fatal(err)
	}
	key := string(entry.Value())
	if err := snapshot.NewStore(l).Purge(t.Context(), thread); err != nil {
		t.Fatal(err)
	}
	check := time.NewTicker(time.Millisecond)
	defer check.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-check.C {
		_, err := known.Decrypt(t.Context(), "acme.thread-1", ciphertext, nil)
		if errors.Is(err, stream.ErrKeyDestroyed) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a process that knew the key, a minute after the purge: got %v, want ErrKeyDestroyed", err)
		}
	}
	again := ask(t, elsewhere, run, "another secret")
	wantText(t, "the new thread", l, again, "another secret")
	if again <= seq {
		t.Errorf("the new thread begins at %d, want after %d", again, seq)
	}
	other, err := kv.Get(t.Context(), "thread.acme.thread-1")
	if err != nil || bytes.Equal(other.Value(), entry.Value()) {
		t.Errorf("key of the new thread: got the old one, %v", err)
	}
	s.Shutdown()
	s.WaitForShutdown()
	if found := search(t, dir, key); found != nil {
		t.Errorf("the destroyed key is in %v", found)
	}
	if found := search(t, dir, string(other.Value())); found == nil {
		t.Error("the new key is in no file: the search finds nothing")
	}
}

// TestInterruptedPurge: a thread whose key was destroyed, and whose records were not removed, counts
// as gone. Purge removes the rest.
func TestInterruptedPurge(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	l := open(t, s, "a")
	seq := ask(t, l, run, secret)
	other := ask(t, l, stream.Run{Thread: stream.Thread{Tenant: "acme", ID: "thread-2"}, ID: "run-1"}, "other")
	if err := keysOf(t, s, "a").Destroy(t.Context(), "acme.thread-1"); err != nil {
		t.Fatal(err)
	}
	restarted := open(t, s, "a")
	if _, err := text(t, restarted, seq); !errors.Is(err, stream.ErrKeyDestroyed) {
		t.Errorf("input: got %v, want ErrKeyDestroyed", err)
	}
	if _, err := restarted.AccessOf(t.Context(), thread); !errors.Is(err, stream.ErrGone) {
		t.Errorf("AccessOf: got %v, want ErrGone", err)
	}
	if err := restarted.RestoreIndex(t.Context()); err != nil {
		t.Errorf("RestoreIndex: %v", err)
	}
	wantText(t, "another thread", restarted, other, "other")
	if err := snapshot.NewStore(restarted).Purge(t.Context(), thread); err != nil {
		t.Fatal(err)
	}
	if has, err := restarted.HasThread(t.Context(), thread); has || err != nil {
		t.Errorf("HasThread after the second purge: got %v, %v", has, err)
	}
}

// TestCiphertextIsBoundToItsPlace: a record that is copied to another subject, or gets another
// header, cannot be decrypted.
func TestCiphertextIsBoundToItsPlace(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	l := open(t, s, "a")
	seq := ask(t, l, run, secret)
	nc := streamtest.Connect(t, s)
	stored := storedMessage(t, nc, seq)
	moved := publish(t, nc, strings.Replace(stored.Subject, ".run-1.", ".run-2.", 1), stored.Header, stored.Data)
	if got, err := text(t, l, moved); err == nil {
		t.Errorf("moved record: got %q, want an error", got)
	}
	header := stored.Header
	header.Set("Perdure", strings.Replace(header.Get("Perdure"), "proposal", "done", 1))
	changed := publish(t, nc, strings.Replace(stored.Subject, ".in-", ".in-0", 1), header, stored.Data)
	if got, err := text(t, l, changed); err == nil {
		t.Errorf("record of another kind: got %q, want an error", got)
	}
	wantText(t, "the record itself", l, seq, secret)
}

// TestRotations: every level of keys is rotated while two processes read and write. Afterwards both
// read everything, and so does a process that has the new operator's key only.
func TestRotations(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	first, second := open(t, s, "a", "b"), open(t, s, "b", "a")
	contents := map[uint64]string{}
	n := 0
	write := func(when string) {
		t.Helper()
		for _, l := range []*stream.Log{first, second} {
			n++
			content := secret + strings.Repeat("!", n)
			contents[ask(t, l, stream.Run{Thread: thread, ID: content}, content)] = content
			contents[ask(t, l, stream.Run{Thread: stream.Thread{Tenant: "acme", ID: content}, ID: "r"}, content)] = content
		}
		for seq, want := range contents {
			wantText(t, when, first, seq, want)
			wantText(t, when, second, seq, want)
		}
	}
	write("before")
	keys := keysOf(t, s, "b", "a")
	for range 3 {
		if _, err := keys.RotateThreads(t.Context()); err != nil {
			t.Fatalf("RotateThreads: %v", err)
		}
		write("after the rotation of threads")
		tenants, threads, err := keys.RotateTenants(t.Context())
		if err != nil || tenants != 1 || threads != n+1 {
			t.Fatalf("RotateTenants = %d, %d, %v, want 1, %d", tenants, threads, err, n+1)
		}
		write("after the rotation of tenants")
		if _, err := keys.RotateOperator(t.Context()); err != nil {
			t.Fatalf("RotateOperator: %v", err)
		}
		write("after the rotation of the operator's key")
	}
	restarted := open(t, s, "b")
	for seq, want := range contents {
		wantText(t, "with the new key only", restarted, seq, want)
	}
}

// TestConfiguredKeys: a log that is written before encryption is switched on stays readable. Without
// the keys that are in use it does not open.
func TestConfiguredKeys(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	plain := open(t, s)
	before := ask(t, plain, run, "plain")
	if err := encryption.CheckPlain(t.Context(), plain); err != nil {
		t.Errorf("CheckPlain before: %v", err)
	}
	l := open(t, s, "a")
	after := ask(t, l, stream.Run{Thread: thread, ID: "run-2"}, secret)
	wantText(t, "written before", l, before, "plain")
	wantText(t, "written after", l, after, secret)
	if err := encryption.CheckPlain(t.Context(), plain); !errors.Is(err, encryption.ErrNoOperatorKey) {
		t.Errorf("CheckPlain after: got %v, want ErrNoOperatorKey", err)
	}
	if _, err := text(t, plain, after); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("a process without a key: got %v, want ErrUnavailable", err)
	}
	_, err := encryption.Open(t.Context(), plain, []encryption.OperatorKey{operatorKey("c")})
	if !errors.Is(err, encryption.ErrUnknownOperatorKey) {
		t.Errorf("Open with another key: got %v, want ErrUnknownOperatorKey", err)
	}
}

// TestKeysAreReadOnce: readers of many records request the key of their thread once, and a known
// thread costs writers no request.
func TestKeysAreReadOnce(t *testing.T) {
	t.Parallel()
	s := streamtest.Server(t)
	l := open(t, s, "a")
	var seqs []uint64
	for i := range 20 {
		seqs = append(seqs, ask(t, l, stream.Run{Thread: thread, ID: strings.Repeat("r", i+1)}, secret))
	}
	if got := requestsOfKeys(t, s, func() { ask(t, l, stream.Run{Thread: thread, ID: "last"}, secret) }); got != 0 {
		t.Errorf("a run of a known thread: got %d requests for keys, want none", got)
	}
	reader := open(t, s, "a")
	got := requestsOfKeys(t, s, func() {
		for _, seq := range seqs {
			wantText(t, "reader", reader, seq, secret)
		}
	})
	if got != 2 { // the thread's and the tenant's
		t.Errorf("a reader of %d records: got %d requests for keys, want 2", len(seqs), got)
	}
	fresh := stream.Run{Thread: stream.Thread{Tenant: "acme", ID: "fresh"}, ID: "r"}
	if got := requestsOfKeys(t, s, func() { ask(t, l, fresh, secret) }); got != 1 {
		t.Errorf("a new thread: got %d requests for keys, want 1", got)
	}
}

// requestsOfKeys returns how many requests for the bucket of keys a function sends: direct gets, of
// which every read sends one, and writes.
func requestsOfKeys(t *testing.T, s *server.Server, of func()) int {
	t.Helper()
	nc := streamtest.Connect(t, s)
	reads, err := nc.SubscribeSync("$JS.API.DIRECT.GET.KV_PERDURE_keys")
	if err != nil {
		t.Fatal(err)
	}
	writes, err := nc.SubscribeSync("$KV.PERDURE_keys.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	of()
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	n, _, _ := reads.Pending()
	m, _, _ := writes.Pending()
	return n + m
}

var _ stream.Cipher = (*encryption.Keys)(nil)
