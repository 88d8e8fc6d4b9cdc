package cluster

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
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
		p := kit.NewPerdure(filepath.Join(disk, "data"), kit.SharedModel)
		p.Keep(t)
		p.Start(t)
		fillsUp(t, &kit.Gateway{Endpoint: p.Endpoint}, disk, func() {})
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		disk := mountDisk(t, t.TempDir(), "size=64m") // before the cluster, which writes to it until it has stopped
		c := kit.NewCluster(t)
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(disk, filepath.Join(c.Data, "nats-1")); err != nil {
			t.Fatal(err)
		}
		log := c.StartLog(t, 1)[0]
		c.StartTemporal(t)
		g := c.StartAPI(t)
		c.StartWorker(t)
		fillsUp(t, g, disk, func() {
			log.Kill()
			log.Start(t)
		})
	})
}

// fillsUp fills the disk under runs, makes room again, and lets revive do what else it takes.
func fillsUp(t *testing.T, g *kit.Gateway, disk string, revive func()) {
	t.Helper()
	ended := kit.NewInput(kit.Say("Briefly."))
	kit.SharedModel.AnswerWith(t, ended.Messages[0].Content, kit.Say("Yes."))
	before := g.Run(t, ended)
	runs := startSteady(t, 3, 4_500, g)
	goOn(t, runs, 1)
	room := fillDisk(t, disk)
	kit.Ready(t, g, http.StatusServiceUnavailable)
	waits, answer := kit.NewInput(kit.Say("Are you there?")), kit.Say("Yes.")
	kit.SharedModel.Attempts(t, waits.Messages[0].Content, kit.Answers(answer))
	resp, err := g.Post(t.Context(), kit.Assistant, waits)
	if r := kit.Refused(t, resp, err); r.Code != "unavailable" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("POST: %+v, Retry-After %q", r, resp.Header.Get("Retry-After"))
	}
	room()
	revive()
	kit.Ready(t, g, http.StatusOK)
	kit.Same(t, "a run that had ended", before, g.Run(t, ended))
	events := g.Run(t, waits)
	kit.WantMessages(t, append(slices.Clone(waits.Messages), kit.Says(answer)), kit.Show(t, waits.Messages, events))
	finishSteady(t, runs)
	for _, r := range runs {
		if n := r.readers[0].Comebacks; n > 0 {
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
