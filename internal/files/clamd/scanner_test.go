package clamd_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/internal/files/clamd"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// serve answers the command INSTREAM as clamd does, until the test ends.
func serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answer(conn)
		}
	}()
	return l.Addr().String()
}

// answer reads one stream, and finds the word EICAR in it.
func answer(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	if command, err := r.ReadString(0); err != nil || command != "zINSTREAM\x00" {
		_, _ = io.WriteString(conn, "UNKNOWN COMMAND\x00")
		return
	}
	var content strings.Builder
	for {
		var size uint32
		if binary.Read(r, binary.BigEndian, &size) != nil {
			return
		}
		if size == 0 {
			break
		}
		if _, err := io.CopyN(&content, r, int64(size)); err != nil {
			return
		}
	}
	switch text := content.String(); {
	case strings.Contains(text, "EICAR"):
		_, _ = io.WriteString(conn, "stream: Eicar-Test-Signature FOUND\x00")
	case strings.Contains(text, "LARGE"):
		_, _ = io.WriteString(conn, "INSTREAM size limit exceeded. ERROR\x00")
	default:
		_, _ = io.WriteString(conn, "stream: OK\x00")
	}
}

// TestFilesAreScanned: a file with a threat, or without a verdict, is not stored.
func TestFilesAreScanned(t *testing.T) {
	t.Parallel()
	log := streamtest.OpenOn(t, streamtest.Server(t))
	put := func(address, content string) (*files.File, error) {
		t.Helper()
		store, err := files.Open(t.Context(), log, files.Options{Scanner: &clamd.Scanner{Address: address}})
		if err != nil {
			t.Fatal(err)
		}
		return store.Put(t.Context(), files.Upload{Tenant: "acme", Body: strings.NewReader(content)})
	}
	address, filler := serve(t), strings.Repeat("filler", 50_000)
	if _, err := put(address, filler); err != nil {
		t.Errorf("a clean file: %v", err)
	}
	_, err := put(address, filler+"EICAR"+filler)
	if threat, ok := errors.AsType[*files.ThreatError](err); !ok || threat.Threat != "Eicar-Test-Signature" {
		t.Errorf("a file with a virus: got %v, want the threat", err)
	}
	for _, address := range []string{address, "127.0.0.1:1"} {
		if _, err := put(address, "LARGE"); !errors.Is(err, stream.ErrUnavailable) {
			t.Errorf("a file without a verdict of %s: got %v, want %v", address, err, stream.ErrUnavailable)
		}
	}
}

// TestSilentScanner: a scan fails if clamd takes no bytes.
func TestSilentScanner(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	scanner := &clamd.Scanner{Address: l.Addr().String(), AnswerTime: 50 * time.Millisecond}
	if _, err := scanner.Scan(t.Context(), zeros{}); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("a scan without an answer: got %v, want %v", err, stream.ErrUnavailable)
	}
}

// zeros is an endless reader of zeros.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
