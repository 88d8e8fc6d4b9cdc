package agui

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// TestHostileInputTakesLittleMemory: a body of 10 MiB with as many tiny entries as possible is
// refused before its entries occupy memory.
func TestHostileInputTakesLittleMemory(t *testing.T) { //nolint:paralleltest // measures the memory of the process
	const size = 10 << 20
	fill := func(before, entry, after string) []byte {
		return []byte(before + strings.TrimSuffix(strings.Repeat(entry, size/len(entry)), ",") + after)
	}
	for name, body := range map[string][]byte{
		"messages":        fill(`{"threadId":"t","runId":"r","messages":[`, `{"id":"m","role":"user","content":""},`, `]}`),
		"parts":           fill(`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":[`, `{"type":"text","text":""},`, `]}]}`),
		"context":         fill(`{"threadId":"t","runId":"r","messages":[],"context":[`, `{"description":"","value":""},`, `]}`),
		"unknown members": fill(`{"threadId":"t","runId":"r","messages":[],`, `"x":1,`, `}`),
		"state":           fill(`{"threadId":"t","runId":"r","messages":[],"state":[`, `[],`, `]}`),
		"forwarded":       fill(`{"threadId":"t","runId":"r","messages":[],"forwardedProps":{"x":[`, `{"a":0},`, `]}}`),
		"parameters":      fill(`{"threadId":"t","runId":"r","messages":[],"tools":[{"name":"n","description":"","parameters":{"enum":[`, `0,`, `]}}]}`),
		"metadata":        fill(`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"","metadata":{`, `"x":1,`, `}}]}`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeInput(body)
		runtime.ReadMemStats(&after)
		if _, ok := errors.AsType[*DecodeError](err); !ok {
			t.Errorf("%s: error = %v, want a *DecodeError", name, err)
		}
		allocated := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d KiB", name, allocated>>10)
		if allocated > 1<<20 {
			t.Errorf("%s: bytes allocated = %d, want at most %d", name, allocated, 1<<20)
		}
	}
}
