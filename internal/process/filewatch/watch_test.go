package filewatch_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/process/filewatch"
)

// TestChangesAreReportedOnce: each new content of a file is reported once, also if the file is
// replaced, linked or removed. A file that is still being written is not reported.
func TestChangesAreReportedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(first, "a")
	write(second, "b")
	synctest.Test(t, func(t *testing.T) {
		var reports atomic.Int32
		w := filewatch.Start(func() { reports.Add(1) }, first, second)
		defer w.Stop()
		want := func(what string, n int32) {
			t.Helper()
			<-time.After(3 * filewatch.Interval) // the clock of the test
			synctest.Wait()
			if reports.Load() != n {
				t.Errorf("reports after %s = %d, want %d", what, reports.Load(), n)
			}
		}
		<-time.After(filewatch.Interval / 2) // between two looks
		want("the start", 0)
		write(second, "c")
		want("a change", 1)
		write(second, "c")
		want("a write of the same content", 1)
		write(filepath.Join(dir, "new"), "d")
		if err := os.Rename(filepath.Join(dir, "new"), first); err != nil {
			t.Fatal(err)
		}
		want("a replacement", 2)
		for _, text := range []string{"e", "ef", "efg", "efgh"} {
			write(first, text)
			<-time.After(filewatch.Interval)
		}
		synctest.Wait()
		if reports.Load() != 2 {
			t.Errorf("reports while the file is written = %d, want 2", reports.Load())
		}
		want("the end of the writes", 3)
		if err := os.Remove(first); err != nil {
			t.Fatal(err)
		}
		want("a removal", 4)
	})
}
