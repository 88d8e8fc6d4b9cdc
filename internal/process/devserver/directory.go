package devserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// format is the version of the directory's layout, with those of Temporal's
// tables: there is no migration of a SQLite file from one to another. A program
// that meets a format that is not its own leaves the directory alone.
const format = "perdure-data 1, temporal " + sqliteschema.Version + "/" + sqliteschema.VisibilityVersion + "\n"

// openDir creates or recognizes the data directory and locks it.
func openDir(dir string) (*dirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &DirectoryError{Dir: dir, Err: err}
	}
	// Before the lock file appears in a directory that is somebody else's.
	if err := checkFormat(dir); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "format"), []byte(format), 0o600); err != nil {
		_ = lock.release()
		return nil, &DirectoryError{Dir: dir, Err: err}
	}
	return lock, nil
}

func checkFormat(dir string) error {
	have, err := os.ReadFile(filepath.Join(dir, "format"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkEmpty(dir)
	case err != nil:
		return &DirectoryError{Dir: dir, Err: err}
	case len(have) > 0 && string(have) != format:
		return &DirectoryError{Dir: dir, Err: fmt.Errorf("its format is %q, this program knows only %q",
			strings.TrimSpace(string(have)), strings.TrimSpace(format))}
	}
	return nil
}

// checkEmpty accepts hidden files, what a new file system brings along, and the
// lock of a first start that got no further.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return &DirectoryError{Dir: dir, Err: err}
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "lost+found" || e.Name() == "lock" {
			continue
		}
		return &DirectoryError{Dir: dir, Err: fmt.Errorf("it holds %q and is no Perdure data directory; name an empty or new one", e.Name())}
	}
	return nil
}
