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

// format is the content of <data>/format: the version of the layout, and of Temporal's tables.
// Temporal has no migrations for SQLite. A program that finds another format refuses the directory
// and changes nothing in it.
const format = "perdure-data 1, temporal " + sqliteschema.Version + "/" + sqliteschema.VisibilityVersion + "\n"

// openDir creates the data directory if it is missing, checks its format, and locks it. Errors:
// *LockedError, *DirectoryError.
func openDir(dir string) (*dirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &DirectoryError{Dir: dir, Err: err}
	}
	// The check comes before lockDir, which would create a lock file in a directory of another
	// program.
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

// checkFormat accepts a directory of this format, and one that is empty. The format file may itself
// be empty, after a process was killed while it wrote the file.
func checkFormat(dir string) error {
	have, err := os.ReadFile(filepath.Join(dir, "format"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkEmpty(dir)
	case err != nil:
		return &DirectoryError{Dir: dir, Err: err}
	case len(have) > 0 && string(have) != format:
		return &DirectoryError{Dir: dir, Err: fmt.Errorf("the directory has the format %q, and this program supports only %q",
			strings.TrimSpace(string(have)), strings.TrimSpace(format))}
	}
	return nil
}

// checkEmpty accepts hidden files, lost+found of a new file system, and the lock file of a first
// start that failed afterwards.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return &DirectoryError{Dir: dir, Err: err}
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "lost+found" || e.Name() == "lock" {
			continue
		}
		return &DirectoryError{Dir: dir, Err: fmt.Errorf("the directory has %q and is not a Perdure data directory: use an empty or new directory", e.Name())}
	}
	return nil
}
