package e2e

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// The disk is full while runs stream: whoever asks for something is told so, and who watches keeps
// the connection and is told nothing wrong. When there is room every run goes on where it was,
// those that were asked for meanwhile too: by themselves where one process is everything, and
// otherwise when NATS was started again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	t.Run("Dev", func(t *testing.T) {
		t.Parallel()
		disk := mountDisk(t, t.TempDir(), "size=64m")
		p := newPerdure(filepath.Join(disk, "data"), sharedModel)
		p.keep(t)
		p.start(t)
		fillsUp(t, &gateway{endpoint: p.endpoint}, disk, func() {})
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		disk := mountDisk(t, t.TempDir(), "size=64m") // before the cluster, which writes to it until it has stopped
		c := newCluster(t)
		if err := os.MkdirAll(c.data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(disk, filepath.Join(c.data, "nats-1")); err != nil {
			t.Fatal(err)
		}
		log := c.startLog(t, 1)[0]
		c.startTemporal(t)
		g := c.startAPI(t)
		c.startWorker(t)
		fillsUp(t, g, disk, func() {
			log.kill()
			log.start(t)
		})
	})
}

// fillsUp fills the disk under runs, makes room again, and lets revive do what else it takes.
func fillsUp(t *testing.T, g *gateway, disk string, revive func()) {
	t.Helper()
	ended := newInput(say("Briefly."))
	sharedModel.answerWith(t, ended.Messages[0].Content, say("Yes."))
	before := g.run(t, ended)
	runs := startSteady(t, 3, 4_500, g)
	goOn(t, runs, 1)
	room := fillDisk(t, disk)
	ready(t, g, http.StatusServiceUnavailable)
	waits, answer := newInput(say("Are you there?")), say("Yes.")
	sharedModel.attempts(t, waits.Messages[0].Content, answers(answer))
	resp, err := g.post(t.Context(), assistant, waits)
	if r := refused(t, resp, err); r.Code != "unavailable" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("POST: %+v, Retry-After %q", r, resp.Header.Get("Retry-After"))
	}
	room()
	revive()
	ready(t, g, http.StatusOK)
	same(t, "a run that had ended", before, g.run(t, ended))
	events := g.run(t, waits)
	wantMessages(t, append(slices.Clone(waits.Messages), says(answer)), show(t, waits.Messages, events))
	finishSteady(t, runs)
	for _, r := range runs {
		if n := r.readers[0].comebacks; n > 0 {
			t.Errorf("a reader had to come back %d times", n)
		}
	}
}

// mountDisk makes a folder a small file system in memory.
func mountDisk(t *testing.T, dir, options string) string {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("SKIP: a small file system cannot be made here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fillDisk takes all the room there is, and returns what gives it back.
func fillDisk(t *testing.T, disk string) (room func()) {
	t.Helper()
	name := filepath.Join(disk, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}
