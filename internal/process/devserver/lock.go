package devserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"
)

// dirLock is the exclusive right to a data directory. The kernel drops it with
// the process, however that ends. The file stays: removing it would let two
// processes lock two different files of the same name.
type dirLock struct {
	file *flock.Flock
}

// held keeps every lock reachable. The servers run on without their [Server], and
// the finalizer of a forgotten file closes it, which unlocks the directory under
// them.
var held sync.Map // *flock.Flock → nil

func lockDir(dir string) (*dirLock, error) {
	path := filepath.Join(dir, "lock")
	file := flock.New(path, flock.SetPermissions(0o600))
	ok, err := file.TryLock()
	if err != nil {
		return nil, &DirectoryError{Dir: dir, Err: err}
	}
	if !ok {
		return nil, readOwner(dir, path)
	}
	l := &dirLock{file: file}
	held.Store(file, nil)
	if err := os.WriteFile(path, ownerLine(), 0o600); err != nil {
		_ = l.release()
		return nil, &DirectoryError{Dir: dir, Err: err}
	}
	return l, nil
}

func (l *dirLock) release() error {
	held.Delete(l.file)
	return l.file.Close()
}

// ownerLine names this process by program and subcommand; flags may hold secrets.
func ownerLine() []byte {
	command := filepath.Base(os.Args[0])
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		command += " " + os.Args[1]
	}
	return fmt.Appendf(nil, "%d %s\n", os.Getpid(), command)
}

// readOwner may find an empty or older line: the owner writes it only after it
// has locked.
func readOwner(dir, path string) *LockedError {
	e := &LockedError{Dir: dir}
	line, err := os.ReadFile(path)
	if err != nil {
		return e
	}
	pid, command, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	if _, err := fmt.Sscan(pid, &e.PID); err == nil {
		e.Command = command
	}
	return e
}
