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

// noHTTP begins Temporal's warning about its HTTP port, which is closed on purpose.
const noHTTP = "HTTP API port has not been set"

// temporalLog writes Temporal's log to slog. It is safe for concurrent use.
type temporalLog struct {
	log   *slog.Logger
	level slog.Leveler
	muted *atomic.Bool // shared with all loggers that With has derived
	attrs []any
}

var (
	_ log.Logger     = (*temporalLog)(nil)
	_ log.WithLogger = (*temporalLog)(nil)
)

// newTemporalLog returns the logger of the embedded Temporal server.
func newTemporalLog(o Options) *temporalLog {
	return &temporalLog{log: o.Logger.With("server", "temporal"), level: o.LogLevel, muted: new(atomic.Bool)}
}

// mute discards all further lines. A Temporal server that stops logs many errors about its own
// parts.
func (l *temporalLog) mute() { l.muted.Store(true) }

// With implements log.WithLogger. It converts the tags but does not call slog's With: Temporal
// derives loggers far more often than it logs at an enabled level.
func (l *temporalLog) With(tags ...tag.Tag) log.Logger {
	attrs := append(l.attrs[:len(l.attrs):len(l.attrs)], tagAttrs(tags)...)
	return &temporalLog{log: l.log, level: l.level, muted: l.muted, attrs: attrs}
}

func (l *temporalLog) Debug(msg string, tags ...tag.Tag) { l.write(slog.LevelDebug, msg, tags) }
func (l *temporalLog) Info(msg string, tags ...tag.Tag)  { l.write(slog.LevelInfo, msg, tags) }
func (l *temporalLog) Warn(msg string, tags ...tag.Tag)  { l.write(slog.LevelWarn, msg, tags) }
func (l *temporalLog) Error(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// DPanic logs a violated assertion. It does not panic: production builds of Temporal continue, too.
func (l *temporalLog) DPanic(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// Panic logs the message and panics with a fatalError.
func (l *temporalLog) Panic(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	panic(fatalError(msg))
}

// Fatal panics instead of ending the process, which is not Temporal's. It must not return, because
// Temporal would continue with nil pointers. During Start, recoverFatal turns the panic into an
// error.
func (l *temporalLog) Fatal(msg string, tags ...tag.Tag) { l.Panic(msg, tags...) }

// write logs a line with the tags and the attributes of With.
func (l *temporalLog) write(level slog.Level, msg string, tags []tag.Tag) {
	ctx := context.Background()
	if level < l.level.Level() || !l.log.Enabled(ctx, level) || l.muted.Load() || strings.HasPrefix(msg, noHTTP) {
		return
	}
	l.log.Log(ctx, level, msg, append(tagAttrs(tags), l.attrs...)...)
}

// tagAttrs converts tags of Temporal to attributes of slog.
func tagAttrs(tags []tag.Tag) []any {
	attrs := make([]any, len(tags))
	for i, t := range tags {
		attrs[i] = slog.Any(t.Key(), t.Value())
	}
	return attrs
}

// fatalError is the message of a fatal log line.
type fatalError string

func (e fatalError) Error() string { return string(e) }

// recoverFatal is deferred. It sets *err to the fatalError of a panic; other panics continue.
func recoverFatal(err *error) {
	switch r := recover().(type) {
	case nil:
	case fatalError:
		*err = r
	default:
		panic(r)
	}
}

// natsLog writes the NATS server's log to slog. It also records two things that the server reports
// in its log only: why it has given up, and that the disk is full. It is safe for concurrent use.
type natsLog struct {
	log    *slog.Logger
	level  slog.Leveler
	fatal  atomic.Pointer[string] // the first fatal message
	noRoom chan struct{}          // capacity 1: the disk was full since the last receive
}

// newNATSLog returns the logger of the embedded NATS server.
func newNATSLog(o Options) *natsLog {
	return &natsLog{log: o.Logger.With("server", "nats"), level: o.LogLevel, noRoom: make(chan struct{}, 1)}
}

func (l *natsLog) Noticef(format string, v ...any) { l.write(slog.LevelInfo, format, v) }
func (l *natsLog) Debugf(format string, v ...any)  { l.write(slog.LevelDebug, format, v) }
func (l *natsLog) Tracef(format string, v ...any)  { l.write(slog.LevelDebug, format, v) }

// Warnf logs a warning; those that follow a kill become informational.
func (l *natsLog) Warnf(format string, v ...any) {
	msg, level := fmt.Sprintf(format, v...), slog.LevelWarn
	if afterKill.MatchString(msg) {
		level = slog.LevelInfo
	}
	l.write(level, "%s", []any{msg})
}

// afterKill matches the server's warnings about the state file of a stream after the server was
// killed. It then reads the stream itself, and nothing is lost. For this server a kill is a normal
// end.
var afterKill = regexp.MustCompile(`^Filestore \[.*\] (Stream state outdated, |TTL state is outdated; |Recovering stream state from index errored: prior state file$)`)

// Errorf logs an error, and records a full disk.
func (l *natsLog) Errorf(format string, v ...any) {
	if reportsFullDisk(v) {
		select {
		case l.noRoom <- struct{}{}:
		default: // recorded already
		}
	}
	l.write(slog.LevelError, format, v)
}

// Fatalf records the message; natsServer.started returns it. The server's Start returns after this
// call.
func (l *natsLog) Fatalf(format string, v ...any) {
	msg := fmt.Sprintf(format, v...)
	l.fatal.CompareAndSwap(nil, &msg)
}

// fatalError returns the recorded fatal message; nil = there is none.
func (l *natsLog) fatalError() error {
	if msg := l.fatal.Load(); msg != nil {
		return errors.New(*msg)
	}
	return nil
}

// write logs a line at a level.
func (l *natsLog) write(level slog.Level, format string, v []any) {
	ctx := context.Background()
	if level < l.level.Level() || !l.log.Enabled(ctx, level) {
		return
	}
	l.log.Log(ctx, level, fmt.Sprintf(format, v...))
}
