package memory

import (
	"os"
	"strings"
	"testing"

	"github.com/dustin/go-humanize"
)

// fileMemory returns the memory of this process whose pages are in files, in bytes.
func fileMemory(t *testing.T) uint64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "RssFile:"); found {
			n, err := humanize.ParseBytes(strings.TrimSpace(value))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("/proc/self/status has no RssFile")
	return 0
}

func TestReleaseText(t *testing.T) {
	before := fileMemory(t)
	if err := releaseText(); err != nil {
		t.Fatal(err)
	}
	if after := fileMemory(t); after >= before {
		t.Errorf("%s of files in memory after %s, want less", humanize.Bytes(after), humanize.Bytes(before))
	}
}

func TestTextMapping(t *testing.T) {
	t.Parallel()
	for line, isText := range map[string]bool{
		"00401000-07008000 r-xp 00001000 fe:00 123 /usr/bin/perdure":    true,
		"07009000-0f8b0000 r--p 06c09000 fe:00 123 /usr/bin/perdure":    true,
		"0f8b6000-0fabb000 rw-p 0f4b6000 fe:00 123 /usr/bin/perdure":    false,
		"7f0000000000-7f0000001000 r-xp 00000000 fe:00 9 /usr/lib/x.so": false,
		"35e892400000-35e8a5400000 rw-p 00000000 00:00 0":               false,
		"somewhere r-xp 00001000 fe:00 123 /usr/bin/perdure":            false,
	} {
		start, end := textMapping(strings.Fields(line), "/usr/bin/perdure")
		if (end > start) != isText {
			t.Errorf("%s: text from %#x to %#x, want text = %t", line, start, end, isText)
		}
	}
	if start, end := textMapping(strings.Fields("00401000-07008000 r-xp 00001000 fe:00 123 /p"), "/p"); start != 0x401000 || end != 0x7008000 {
		t.Errorf("text from %#x to %#x, want 0x401000 to 0x7008000", start, end)
	}
}
