package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/perdure/perdure/agents"
)

// quietPeriod is how long no file must change before the folder is read again. An editor that saves
// a file changes the folder several times.
const quietPeriod = 100 * time.Millisecond

// folderWatch watches the folder of definitions, which need not exist, and its subfolders. It
// watches folders and not files, because many editors replace a file when they save it. stop ends
// its goroutine.
type folderWatch struct {
	folder  string // absolute
	files   *fsnotify.Watcher
	changed func(context.Context)
	logger  *slog.Logger

	cancel context.CancelFunc
	ended  chan struct{}
}

// watchFolder starts a watch. Its goroutine calls changed once at the start, and after each change
// of a definition or of the folder itself. The context of changed ends with ctx and with stop.
func watchFolder(ctx context.Context, folder string, changed func(context.Context), logger *slog.Logger) (*folderWatch, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	files, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &folderWatch{folder: absolute, files: files, changed: changed, logger: logger, ended: make(chan struct{})}
	ctx, w.cancel = context.WithCancel(ctx)
	go w.run(ctx)
	return w, nil
}

// stop ends the watch, and waits until changed has returned.
func (w *folderWatch) stop() error {
	w.cancel()
	<-w.ended
	return w.files.Close()
}

// run calls changed until ctx ends.
func (w *folderWatch) run(ctx context.Context) {
	defer close(w.ended)
	quiet := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			quiet.Stop()
			return
		case event := <-w.files.Events:
			if w.concerns(event) {
				quiet.Reset(quietPeriod)
			}
		case err := <-w.files.Errors: // events were lost
			w.logger.WarnContext(ctx, "watching the folder of definitions", "error", err)
			quiet.Reset(quietPeriod)
		case <-quiet.C:
			w.watch()
			w.changed(ctx)
		}
	}
}

// concerns reports whether an event may change the definitions: one of a definition's file, of the
// folder, of a subfolder, or of a folder above it.
func (w *folderWatch) concerns(event fsnotify.Event) bool {
	if event.Op == fsnotify.Chmod {
		return false
	}
	if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
		if w.forget(event.Name) {
			return true
		}
	}
	if isIn(w.folder, event.Name) {
		return true
	}
	if !isIn(event.Name, w.folder) {
		return false
	}
	if agents.IsDefinitionFile(filepath.Base(event.Name)) {
		return true
	}
	info, err := os.Lstat(event.Name)
	return err == nil && info.IsDir()
}

// forget removes the watches of a folder and of those below it, because other folders may get their
// names. It reports whether there were any.
func (w *folderWatch) forget(folder string) (isWatched bool) {
	for _, watched := range w.files.WatchList() {
		if isIn(watched, folder) {
			isWatched = true
			_ = w.files.Remove(watched) // the error says that there is no watch
		}
	}
	return isWatched
}

// isIn reports whether a path is a folder, or below it.
func isIn(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+string(filepath.Separator))
}

// watch watches the folder with its subfolders, and the nearest folder above it that exists. The
// folder above is watched first, so that no creation between the two calls is missed.
func (w *folderWatch) watch() {
	for {
		missing, above := w.folder, filepath.Dir(w.folder)
		for w.files.Add(above) != nil && above != filepath.Dir(above) {
			missing, above = above, filepath.Dir(above)
		}
		if _, err := os.Stat(missing); missing == w.folder || err != nil {
			break
		}
	}
	// A subfolder that is created before its parent is watched has no event: the next round finds
	// it.
	for isComplete := false; !isComplete; {
		isComplete = true
		folders, err := agents.FoldersIn(w.folder)
		if err != nil { // the folder is missing, and its creation is an event, or reading it fails with the same error
			return
		}
		watched := w.files.WatchList()
		for _, folder := range folders {
			if slices.Contains(watched, folder) {
				continue
			}
			err := w.files.Add(folder)
			if err == nil {
				isComplete = false
			} else if !errors.Is(err, fs.ErrNotExist) {
				w.logger.Warn("changes of definitions are not noticed", "folder", folder, "error", err)
			}
		}
	}
}
