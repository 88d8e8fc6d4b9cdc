package apinode

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// TestUnreadBytesAreBounded: the kernel buffers little for a client that does not read.
func TestUnreadBytesAreBounded(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	connContext(t.Context(), conn)
	sent, piece := 0, make([]byte, 4<<10)
	for {
		if err := conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Write(piece)
		sent += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d KiB", sent>>10)
	if sent > 1<<20 {
		t.Errorf("bytes taken for a client that does not read = %d, want at most %d", sent, 1<<20)
	}
}
