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

// This file restarts JetStream after the disk was full. In a stream that could not write, JetStream
// tries again only after a restart of the server. An operator restarts other servers; the embedded
// one has only its process.

const (
	// roomPause is the pause between two checks for free space.
	roomPause = time.Second
	// roomNeeded is how much must fit on the disk before JetStream is restarted, in bytes.
	roomNeeded = 4 << 20
)

// watchDisk restarts JetStream when the disk was full and has space again. It returns when ctx
// ends.
func (n *natsServer) watchDisk(ctx context.Context, dir string, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.log.noRoom:
		}
		log.ErrorContext(ctx, "the disk is full: runs wait until it has room", "dir", dir)
		for restarted := false; !restarted; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(roomPause):
			}
			restarted = hasRoom(dir) && n.restartJetStream(ctx, dir, log)
		}
		log.WarnContext(ctx, "the disk has room again: runs continue")
	}
}

// restartJetStream restarts JetStream over its data, while the server and its connections stay. It
// returns false if JetStream has not started; the caller tries again.
func (n *natsServer) restartJetStream(ctx context.Context, dir string, log *slog.Logger) bool {
	_ = n.server.ShutdownJetStream() // returns no error for a server that is not clustered
	if n.server.JetStreamConfig() != nil {
		return false // JetStream had begun to stop by itself, and has not finished
	}
	select {
	case <-n.log.noRoom: // a report from before the restart
	default:
	}
	if err := n.server.EnableJetStream(&server.JetStreamConfig{StoreDir: dir}); err != nil {
		log.ErrorContext(ctx, "JetStream could not be restarted", "error", err)
		return false
	}
	return true
}

// hasRoom reports whether roomNeeded bytes can be written. It writes them: the free space that a
// file system reports may exceed what a user can use (quotas, reserved blocks).
func hasRoom(dir string) bool {
	f, err := os.CreateTemp(dir, "room-*")
	if err != nil {
		return false
	}
	_, err = f.Write(make([]byte, roomNeeded))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())) == nil
}

// reportsFullDisk reports whether the arguments of a log line have the error of a full disk
// (ENOSPC).
func reportsFullDisk(v []any) bool {
	for _, arg := range v {
		if err, ok := arg.(error); ok && errors.Is(err, syscall.ENOSPC) {
			return true
		}
	}
	return false
}
