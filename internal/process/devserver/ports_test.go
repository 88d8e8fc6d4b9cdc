package devserver

import "testing"

// TestPortsBelongToOneServer: a block that has been reserved and whose ports are not in use yet is
// not given to another server.
func TestPortsBelongToOneServer(t *testing.T) {
	t.Parallel()
	owners := make(map[int]*portBlock)
	for range 200 {
		b, err := reservePorts()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.release)
		for i := 1; i < blockSize; i++ {
			if other := owners[b.port(i)]; other != nil {
				t.Fatalf("port %d is in the block at %d and in the block at %d", b.port(i), b.first, other.first)
			}
			owners[b.port(i)] = b
		}
	}
}

func TestUsedPortIsInNoBlock(t *testing.T) {
	t.Parallel()
	b, err := reservePorts()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.release)
	if !b.free() {
		t.Fatal("free = false, want true")
	}
	l, err := listen(b.port(blockSize - 1))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if b.free() {
		t.Fatal("free = true while a process listens on a port of the block, want false")
	}
}
