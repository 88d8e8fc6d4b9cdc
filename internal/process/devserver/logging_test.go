package devserver

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// logTo returns options with a logger.
func logTo(buf *bytes.Buffer, level slog.Leveler) Options {
	h := slog.NewTextHandler(buf, &slog.HandlerOptions{Level: slog.LevelDebug})
	return Options{Logger: slog.New(h), LogLevel: level}
}

func TestTemporalLogOmitsLinesBelowItsLevel(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	l := newTemporalLog(logTo(&buf, slog.LevelWarn))
	l.Debug("debug")
	l.Info("info")
	l.Warn(noHTTP + ", so there.")
	if buf.Len() != 0 {
		t.Errorf("log = %s, want none", &buf)
	}
	l.Error("error")
	if !strings.Contains(buf.String(), "level=ERROR msg=error server=temporal") {
		t.Errorf("log = %q, want the error of Temporal", &buf)
	}
}

func TestTemporalLogCarriesTags(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	root := newTemporalLog(logTo(&buf, slog.LevelWarn))
	l := log.With(root, tag.NewStringTag("outer", "1"))
	one, two := log.With(l, tag.NewStringTag("inner", "2")), log.With(l, tag.NewStringTag("inner", "3"))
	one.Warn("first", tag.NewInt("n", 4))
	two.Warn("second")
	first, second, _ := strings.Cut(buf.String(), "\n")
	if !strings.HasSuffix(first, "n=4 outer=1 inner=2") || !strings.HasSuffix(strings.TrimSpace(second), "outer=1 inner=3") {
		t.Errorf("log = %q and %q, want the tags of each logger", first, second)
	}
	buf.Reset()
	root.mute()
	one.Error("stopping")
	if buf.Len() != 0 {
		t.Errorf("log after mute = %q, want none", &buf)
	}
}

func TestTemporalFatalIsError(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	l := newTemporalLog(logTo(&buf, slog.LevelWarn))
	err := func() (err error) {
		defer recoverFatal(&err)
		l.Fatal("cannot listen", tag.NewInt("port", 1))
		return nil
	}()
	if err == nil || err.Error() != "cannot listen" || !strings.Contains(buf.String(), "port=1") {
		t.Errorf("error = %v, log = %q, want the message and its tags", err, &buf)
	}
	defer func() {
		if r := recover(); r != "other" {
			t.Errorf("panic = %v, want other", r)
		}
	}()
	defer recoverFatal(&err)
	panic("other")
}

func TestNATSLogRemembersTheFirstFatal(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	l := newNATSLog(logTo(&buf, slog.LevelWarn))
	l.Noticef("hello")
	l.Warnf("disk %d%% full", 90)
	if got := buf.String(); strings.Contains(got, "hello") || !strings.Contains(got, "disk 90% full") {
		t.Errorf("log = %q, want only the full disk", got)
	}
	if err := l.fatalError(); err != nil {
		t.Errorf("fatal error %v before any", err)
	}
	l.Fatalf("no %s", "disk")
	l.Fatalf("and then some")
	if err := l.fatalError(); err == nil || err.Error() != "no disk" {
		t.Errorf("fatal error %v, want the first", err)
	}
}

func TestNATSLogReportsFullDisk(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	l := newNATSLog(logTo(&buf, slog.LevelWarn))
	l.Errorf("write error: %v", errors.New("no"))
	if len(l.noRoom) != 0 {
		t.Error("another error: got a full disk, want none")
	}
	for range 2 { // reported twice, sent once, without blocking
		l.Errorf("write error: %v", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	}
	if len(l.noRoom) != 1 {
		t.Errorf("number of full disks = %d, want 1", len(l.noRoom))
	}
}

// TestNATSLogOmitsWarningsOfKill: the documentation allows killing the process, so the next start
// does not warn about it.
func TestNATSLogOmitsWarningsOfKill(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	l := newNATSLog(logTo(&buf, slog.LevelWarn))
	l.Warnf("Filestore [KV_PERDURE_tools] Stream state outdated, last block has additional entries, will rebuild")
	l.Warnf("Filestore [KV_PERDURE_tools] Recovering stream state from index errored: %v", errors.New("prior state file"))
	l.Warnf("Filestore [KV_PERDURE_tools] TTL state is outdated; attempting to recover using linear scan (seq %d to %d)", 1, 4)
	if buf.Len() != 0 {
		t.Errorf("log = %s, want no warning", &buf)
	}
	for _, warning := range []string{"Stream state checksum did not match", "Recovering stream state from index errored: corrupt state file"} {
		l.Warnf("Filestore [KV_PERDURE_tools] %s", warning)
		if !strings.Contains(buf.String(), warning) {
			t.Errorf("log: want a warning about %q", warning)
		}
	}
}
