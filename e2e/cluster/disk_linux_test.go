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

// TestDiskFull: the disk is full while runs stream. Requests are refused with a clear error, and
// readers keep their connections and see nothing wrong. When there is room again, all runs
// continue, including those requested meanwhile. With "perdure dev" they do so by themselves, and
// in a cluster after a restart of NATS.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	t.Run("Dev", func(t *testing.T) {
		t.Parallel()
		disk := mountDisk(t, t.TempDir(), "size=64m")
		p := kit.NewPerdure(filepath.Join(disk, "data"), kit.SharedModel)
		p.InspectAtEnd(t)
		p.Start(t)
		fillDiskUnderRuns(t, &kit.API{Endpoint: p.Endpoint}, disk, func() {})
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		disk := mountDisk(t, t.TempDir(), "size=64m") // before the cluster, so that it is unmounted after the cluster has stopped
		c := kit.NewCluster(t)
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(disk, filepath.Join(c.Data, "nats-1")); err != nil {
			t.Fatal(err)
		}
		log := c.StartNATS(t, 1)[0]
		c.StartTemporal(t)
		g := c.StartAPI(t)
		c.StartWorker(t)
		fillDiskUnderRuns(t, g, disk, func() {
			log.Kill()
			log.Start(t)
		})
	})
}

// fillDiskUnderRuns fills the disk during runs, makes room again, and calls revive.
func fillDiskUnderRuns(t *testing.T, g *kit.API, disk string, revive func()) {
	t.Helper()
	ended := kit.NewInput(kit.Marked("Briefly."))
	kit.SharedModel.AnswerWith(t, ended.Messages[0].Content, kit.Marked("Yes."))
	before := g.Run(t, ended)
	runs := startSteady(t, 3, 4_500, g)
	untilContent(t, runs, 1)
	room := fillDisk(t, disk)
	kit.AwaitReadyStatus(t, g, http.StatusServiceUnavailable)
	waits, answer := kit.NewInput(kit.Marked("Are you there?")), kit.Marked("Yes.")
	kit.SharedModel.AnswerInOrder(t, waits.Messages[0].Content, kit.FastAnswer(answer))
	resp, err := g.Post(t.Context(), kit.AssistantPath, waits)
	if r := kit.ReadProblem(t, resp, err); r.Code != "unavailable" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("POST: got %+v, Retry-After %q, want unavailable with a time", r, resp.Header.Get("Retry-After"))
	}
	room()
	revive()
	kit.AwaitReadyStatus(t, g, http.StatusOK)
	kit.WantSameEvents(t, "a run that had ended", before, g.Run(t, ended))
	events := g.Run(t, waits)
	kit.WantMessages(t, append(slices.Clone(waits.Messages), kit.AssistantMessage(answer)), kit.ShownMessages(t, waits.Messages, events))
	finishSteady(t, runs)
	for _, r := range runs {
		if n := r.readers[0].Reconnects; n > 0 {
			t.Errorf("number of reconnects = %d, want none", n)
		}
	}
}

// mountDisk mounts a small file system in memory on a folder.
func mountDisk(t *testing.T, dir, options string) string {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("SKIP: a small file system cannot be made here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fillDisk fills the disk and returns a function that makes room again.
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
