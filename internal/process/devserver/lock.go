package devserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"
)

// dirLock is the exclusive right to use a data directory. It is an flock, which the kernel releases
// when the process ends for any reason. The lock file stays: if it were removed, two processes
// could lock two different files of the same name.
type dirLock struct {
	file *flock.Flock
}

// heldLocks keeps every lock reachable for the garbage collector. The servers run even if their
// [Server] becomes unreachable; the finalizer of an unreachable file would close it, and thus
// unlock the directory that they use.
var heldLocks sync.Map // *flock.Flock → nil

// lockDir locks a data directory, and writes the owner into the lock file. It does not wait.
// Errors: *LockedError if another process has the lock, *DirectoryError.
func lockDir(dir string) (*dirLock, error) {
	path := filepath.Join(dir, "lock")
	file := flock.New(path, flock.SetPermissions(0o600))
	locked, err := file.TryLock()
	if err != nil {
		return nil, &DirectoryError{Dir: dir, Err: err}
	}
	if !locked {
		return nil, readOwner(dir, path)
	}
	l := &dirLock{file: file}
	heldLocks.Store(file, nil)
	if err := os.WriteFile(path, ownerLine(), 0o600); err != nil {
		_ = l.release()
		return nil, &DirectoryError{Dir: dir, Err: err}
	}
	return l, nil
}

// release unlocks the directory.
func (l *dirLock) release() error {
	heldLocks.Delete(l.file)
	return l.file.Close()
}

// ownerLine returns the content of the lock file: PID, program and subcommand of this process. It
// leaves out flags, which may have secrets.
func ownerLine() []byte {
	command := filepath.Base(os.Args[0])
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		command += " " + os.Args[1]
	}
	return fmt.Appendf(nil, "%d %s\n", os.Getpid(), command)
}

// readOwner returns the error about a locked directory. The line may be missing or that of an
// earlier owner, because the owner writes it after it has locked the file.
func readOwner(dir, path string) *LockedError {
	lockedErr := &LockedError{Dir: dir}
	line, err := os.ReadFile(path)
	if err != nil {
		return lockedErr
	}
	pid, command, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	if _, err := fmt.Sscan(pid, &lockedErr.PID); err == nil {
		lockedErr.Command = command
	}
	return lockedErr
}
