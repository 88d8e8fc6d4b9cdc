package cli

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Modes of new files, without the umask.
const (
	publicMode  fs.FileMode = 0o666 // as that of os.Create
	privateMode fs.FileMode = 0o600 // for personal data
)

// replaceFile writes a file, which has its earlier content until write has returned no error. mode is that of a
// new file. A file that exists keeps its mode, unless mode is privateMode.
//
// A symbolic link stays, and its target is replaced. A device, a pipe, or the missing target of a link has no
// content to keep, and is written to directly.
func replaceFile(name string, mode fs.FileMode, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	earlier, err := os.Lstat(name)
	if err == nil && !earlier.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
		if err != nil {
			return usage(err)
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(name), ".perdure-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return usage(err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it was renamed, or the error is reported
	if earlier != nil && mode != privateMode {
		err = f.Chmod(earlier.Mode().Perm())
	}
	if err == nil {
		err = write(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
