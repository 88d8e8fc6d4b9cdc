package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestFullDisk: when the file system under the log is full, no record is acknowledged that is not
// stored. Writers wait and the log is not ready. After the server restarts with more room, writers
// and readers continue.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount(t, dir, 0, "size=8m")
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	ctx := testContext(t)
	n := &node{config: nodeConfig{Name: "alone", Dir: dir, Port: freePort(t)}}
	n.start(t)
	t.Cleanup(n.kill)
	nc := must[*nats.Conn](t)(nats.Connect(fmt.Sprintf("nats://%s:%d", loopback, n.config.Port), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond)))
	t.Cleanup(nc.Close)
	l := must[*stream.Log](t)(stream.Open(ctx, nc, stream.Options{}))
	tail := streamtest.Follow(t, l).Tail(run)
	defer tail.Close()

	w := &diskWriter{log: l, wrote: make(chan uint64, 1000)}
	writing, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.run(writing) }()
	var acknowledged, shown []uint64
	read := func(seq uint64) {
		t.Helper()
		for acknowledged = append(acknowledged, seq); len(shown) < len(acknowledged); {
			records, err := tail.Next(ctx, time.Minute)
			if err != nil || len(records) == 0 {
				t.Fatalf("record %d: %v, want it to be readable", seq, err)
			}
			for _, r := range records {
				shown = append(shown, r.Seq)
			}
		}
	}
	for full := false; !full; {
		select {
		case seq := <-w.wrote:
			read(seq)
		case <-time.After(3 * time.Second): // the last writes have been acknowledged
			full = errors.Is(l.Ready(ctx), stream.ErrFull)
		case err := <-done:
			t.Fatalf("the writer ended: %v", err)
		}
	}
	err := l.Ready(ctx)
	t.Logf("full after %d records: %v", len(acknowledged), err)
	if !errors.Is(err, stream.ErrFull) {
		t.Errorf("Ready on a full disk: got %v, want ErrFull", err)
	}
	if had, err := l.ReadTo(ctx, run, 0); err != nil || len(had) != len(acknowledged) {
		t.Errorf("readable records: got %d, %v, want %d", len(had), err, len(acknowledged))
	}
	n.kill()
	mount(t, dir, syscall.MS_REMOUNT, "size=64m")
	n.start(t)
	for range 20 {
		read(<-w.wrote)
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the writer ended with %v, want context.Canceled", err)
	}
	if !slices.Equal(shown[:len(acknowledged)], acknowledged) {
		t.Errorf("records read: got %v, want the acknowledged %v", shown, acknowledged)
	}
	if err := l.Ready(ctx); err != nil {
		t.Errorf("Ready with more room: got %v", err)
	}
}

// mount mounts a tmpfs.
func mount(t *testing.T, dir string, flags uintptr, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Skipf("SKIP: a small file system cannot be made here: %v", err)
	}
}

// diskWriter writes large records to a lane and reports the acknowledged sequences.
type diskWriter struct {
	log   *stream.Log
	wrote chan uint64
}

// run writes records until its context ends.
func (w *diskWriter) run(ctx context.Context) error {
	text := strings.Repeat("x", 60<<10)
	for last := uint64(0); ; {
		seq, err := w.log.OpenStep(ctx, place(fmt.Sprint(last), last), nil, textContent("m", text))
		if err != nil {
			return err
		}
		last = seq
		w.wrote <- seq
	}
}
