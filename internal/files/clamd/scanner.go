// Package clamd scans files with clamd, a virus scanner.
package clamd

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/perdure/perdure/stream"
)

const (
	chunkBytes = 64 << 10 // size of a chunk
	dialTime   = 10 * time.Second
	// defaultAnswerTime is the default of Scanner.AnswerTime.
	defaultAnswerTime = 2 * time.Minute
)

// Scanner implements files.Scanner. Each scan has a connection of its own. It is safe for concurrent use.
type Scanner struct {
	// Address is where clamd listens, host:port.
	Address string
	// AnswerTime is how long clamd may take no bytes, and how long it may take for its answer after the
	// last chunk. Defaults to two minutes.
	AnswerTime time.Duration
}

// Scan implements files.Scanner by the command INSTREAM (man clamd): chunks with their length in four
// bytes, and an empty one at the end. clamd refuses a stream that exceeds its own limit, which must be
// at least the largest size of a file.
func (s *Scanner) Scan(ctx context.Context, r io.Reader) (threat string, err error) {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return "", unavailable(err)
	}
	defer conn.Close() //nolint:errcheck // the answer was read
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	answerTime := cmp.Or(s.AnswerTime, defaultAnswerTime)
	w := bufio.NewWriterSize(conn, chunkBytes+4)
	if _, err := w.WriteString("zINSTREAM\x00"); err != nil {
		return "", unavailable(err)
	}
	chunk := make([]byte, chunkBytes)
	for {
		n, readErr := io.ReadFull(r, chunk)
		if readErr != nil && !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
			return "", readErr // the upload has failed
		}
		_ = conn.SetWriteDeadline(time.Now().Add(answerTime))
		if ctx.Err() != nil { // it may have ended before the deadline was set
			return "", context.Cause(ctx)
		}
		if n > 0 {
			_ = binary.Write(w, binary.BigEndian, uint32(n)) //nolint:gosec // at most chunkBytes; the writer keeps its first error
			if _, err := w.Write(chunk[:n]); err != nil {
				break // clamd may have answered before the end
			}
		}
		if readErr != nil {
			_ = binary.Write(w, binary.BigEndian, uint32(0))
			_ = w.Flush()
			break
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(answerTime))
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	answer, err := bufio.NewReader(conn).ReadString(0)
	if err != nil {
		return "", unavailable(err)
	}
	return verdict(strings.TrimRight(answer, "\x00\n"))
}

// verdict reads the answer of clamd.
func verdict(answer string) (threat string, err error) {
	answer = strings.TrimPrefix(answer, "stream: ")
	if answer == "OK" {
		return "", nil
	}
	if threat, ok := strings.CutSuffix(answer, " FOUND"); ok {
		return threat, nil
	}
	return "", unavailable(fmt.Errorf("clamd: unexpected answer %.200q", answer))
}

// unavailable marks an error of clamd as stream.ErrUnavailable: the file is not stored, and the upload
// may be repeated.
func unavailable(err error) error { return fmt.Errorf("clamd: %w: %w", stream.ErrUnavailable, err) }
