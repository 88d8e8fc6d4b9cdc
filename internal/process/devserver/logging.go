package devserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// noHTTP begins a warning at every start about a port left closed on purpose.
const noHTTP = "HTTP API port has not been set"

// temporalLog hands Temporal's log to slog.
type temporalLog struct {
	log   *slog.Logger
	level slog.Leveler
	muted *atomic.Bool // shared by all that With derived
	attrs []any
}

var (
	_ log.Logger     = (*temporalLog)(nil)
	_ log.WithLogger = (*temporalLog)(nil)
)

func newTemporalLog(o Options) *temporalLog {
	return &temporalLog{log: o.Logger.With("server", "temporal"), level: o.LogLevel, muted: new(atomic.Bool)}
}

// mute drops everything from now on. A Temporal that stops complains at length,
// and at level error, that its parts are going away.
func (l *temporalLog) mute() { l.muted.Store(true) }

// With keeps the tags until something is logged: Temporal derives loggers far
// more often than it passes the level.
func (l *temporalLog) With(tags ...tag.Tag) log.Logger {
	attrs := append(l.attrs[:len(l.attrs):len(l.attrs)], tagAttrs(tags)...)
	return &temporalLog{log: l.log, level: l.level, muted: l.muted, attrs: attrs}
}

func (l *temporalLog) Debug(msg string, tags ...tag.Tag) { l.write(slog.LevelDebug, msg, tags) }
func (l *temporalLog) Info(msg string, tags ...tag.Tag)  { l.write(slog.LevelInfo, msg, tags) }
func (l *temporalLog) Warn(msg string, tags ...tag.Tag)  { l.write(slog.LevelWarn, msg, tags) }
func (l *temporalLog) Error(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// DPanic returns a broken assertion that production builds of Temporal survive.
func (l *temporalLog) DPanic(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

func (l *temporalLog) Panic(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	panic(fatalError(msg))
}

// Fatal may not end the process, which is not Temporal's, but must not return:
// Temporal goes on with nil. Within Start the panic becomes an error.
func (l *temporalLog) Fatal(msg string, tags ...tag.Tag) { l.Panic(msg, tags...) }

func (l *temporalLog) write(level slog.Level, msg string, tags []tag.Tag) {
	ctx := context.Background()
	if level < l.level.Level() || !l.log.Enabled(ctx, level) || l.muted.Load() || strings.HasPrefix(msg, noHTTP) {
		return
	}
	l.log.Log(ctx, level, msg, append(tagAttrs(tags), l.attrs...)...)
}

func tagAttrs(tags []tag.Tag) []any {
	attrs := make([]any, len(tags))
	for i, t := range tags {
		attrs[i] = slog.Any(t.Key(), t.Value())
	}
	return attrs
}

// fatalError is what Temporal died of.
type fatalError string

func (e fatalError) Error() string { return string(e) }

// recoverFatal turns the panic of [temporalLog.Fatal] into *err.
func recoverFatal(err *error) {
	switch r := recover().(type) {
	case nil:
	case fatalError:
		*err = r
	default:
		panic(r)
	}
}

// natsLog hands the NATS server's log to slog, remembers why it gave up, and tells
// that the disk was full: the server says so in no other way.
type natsLog struct {
	log    *slog.Logger
	level  slog.Leveler
	fatal  atomic.Pointer[string]
	noRoom chan struct{} // holds one if there was no room on the disk
}

func newNATSLog(o Options) *natsLog {
	return &natsLog{log: o.Logger.With("server", "nats"), level: o.LogLevel, noRoom: make(chan struct{}, 1)}
}

func (l *natsLog) Noticef(format string, v ...any) { l.write(slog.LevelInfo, format, v) }
func (l *natsLog) Debugf(format string, v ...any)  { l.write(slog.LevelDebug, format, v) }
func (l *natsLog) Tracef(format string, v ...any)  { l.write(slog.LevelDebug, format, v) }

func (l *natsLog) Warnf(format string, v ...any) {
	msg, level := fmt.Sprintf(format, v...), slog.LevelWarn
	if afterKill.MatchString(msg) {
		level = slog.LevelInfo
	}
	l.write(level, "%s", []any{msg})
}

// afterKill is what the server says of the index of a stream when it was killed before it had
// written one: it reads the stream itself, and nothing is lost. Being killed is what this server is
// for.
var afterKill = regexp.MustCompile(`^Filestore \[.*\] (Stream state outdated, |TTL state is outdated; |Recovering stream state from index errored: prior state file$)`)

func (l *natsLog) Errorf(format string, v ...any) {
	if tellsOfNoRoom(v) {
		select {
		case l.noRoom <- struct{}{}:
		default: // it is known
		}
	}
	l.write(slog.LevelError, format, v)
}

// Fatalf is followed by a return from the server's Start.
func (l *natsLog) Fatalf(format string, v ...any) {
	msg := fmt.Sprintf(format, v...)
	l.fatal.CompareAndSwap(nil, &msg)
}

func (l *natsLog) fatalError() error {
	if msg := l.fatal.Load(); msg != nil {
		return errors.New(*msg)
	}
	return nil
}

func (l *natsLog) write(level slog.Level, format string, v []any) {
	ctx := context.Background()
	if level < l.level.Level() || !l.log.Enabled(ctx, level) {
		return
	}
	l.log.Log(ctx, level, fmt.Sprintf(format, v...))
}
