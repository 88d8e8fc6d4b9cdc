package devserver

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// roomPause lies between two looks for room on the disk.
	roomPause = time.Second
	// roomNeeded has to fit on the disk before JetStream writes again, in bytes.
	roomNeeded = 4 << 20
)

// keepWriting starts JetStream anew when the disk was full and has room again. A stream that once
// could not write never tries again until its server was started anew, which is for an operator to
// do; this server has none but its process. It returns when ctx ends.
func (n *natsServer) keepWriting(ctx context.Context, dir string, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.log.noRoom:
		}
		log.ErrorContext(ctx, "the disk is full: runs wait until it has room", "dir", dir)
		for anew := false; !anew; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(roomPause):
			}
			anew = hasRoom(dir) && n.startAnew(ctx, dir, log)
		}
		log.WarnContext(ctx, "the disk has room again: runs go on")
	}
}

// startAnew reports whether JetStream was started anew.
func (n *natsServer) startAnew(ctx context.Context, dir string, log *slog.Logger) bool {
	_ = n.server.ShutdownJetStream() // of one server it has no error
	if n.server.JetStreamConfig() != nil {
		return false // it was about to stop by itself, and does so still
	}
	select {
	case <-n.log.noRoom: // what was told of before
	default:
	}
	if err := n.server.EnableJetStream(&server.JetStreamConfig{StoreDir: dir}); err != nil {
		log.ErrorContext(ctx, "JetStream does not start anew", "error", err)
		return false
	}
	return true
}

// hasRoom finds out by writing: what a file system says of its room is not what one may have of it.
func hasRoom(dir string) bool {
	f, err := os.CreateTemp(dir, "room-*")
	if err != nil {
		return false
	}
	_, err = f.Write(make([]byte, roomNeeded))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())) == nil
}

// tellsOfNoRoom looks for the error of a full disk among what is logged.
func tellsOfNoRoom(v []any) bool {
	for _, arg := range v {
		if err, ok := arg.(error); ok && errors.Is(err, syscall.ENOSPC) {
			return true
		}
	}
	return false
}
