package kit

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// databaseUser is the user of the tests in PostgreSQL.
const databaseUser = "temporal"

// StartTemporalOnPostgres starts Temporal on PostgreSQL, as in production. It skips the test if
// PostgreSQL is not installed.
func (c *Cluster) StartTemporalOnPostgres(t *testing.T) *Server {
	t.Helper()
	port := FreePorts(t, 5)
	c.startPostgres(t, port[0])
	return c.startServer(t, "temporal", "-postgres", "127.0.0.1:"+strconv.Itoa(port[0]), "-user", databaseUser,
		"-port", strconv.Itoa(port[1]), "-config", filepath.Join("..", "deploy", "temporal", "dynamicconfig.yaml"))
}

// startPostgres starts PostgreSQL on an empty directory. Without fsync it still survives SIGKILL, as
// the operating system keeps its writes.
func (c *Cluster) startPostgres(t *testing.T, port int) *Server {
	t.Helper()
	bin := postgresPrograms(t)
	dir, err := os.MkdirTemp("", "perdure-postgres-") // not t.TempDir, which is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	c.postgresDir = dir
	data, credentials := filepath.Join(dir, "data"), Unprivileged(t, dir)
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", databaseUser,
		"-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, credentials
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	c.search = func() error { return searchPostgres(data) }
	s := &Server{launch: func(t *testing.T) *Process {
		t.Helper()
		// PostgreSQL reports on standard error that it is ready.
		cmd := exec.Command("sh", "-c", `exec "$0" "$@" 2>&1`, filepath.Join(bin, "postgres"), "-D", data, "-h", "127.0.0.1",
			"-p", strconv.Itoa(port), "-k", "", "-F", "-c", "max_connections=200")
		cmd.Dir, cmd.SysProcAttr = dir, credentials
		return c.Launch(t, cmd, func(line []byte) bool { return bytes.Contains(line, []byte("ready to accept connections")) })
	}}
	s.Start(t)
	c.Servers = append(c.Servers, s)
	return s
}

// searchPostgres looks for content in all files of the database, the write-ahead log included.
func searchPostgres(dir string) error {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	return errors.Join(err, searchFiles(files))
}

// postgresPrograms returns the directory of PostgreSQL's programs. Distributions keep the server's
// programs out of the path.
func postgresPrograms(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		t.Skip("SKIP: this test needs PostgreSQL (initdb and postgres), which is not installed")
	}
	return filepath.Dir(slices.Max(found))
}

// Unprivileged gives a directory to a user who is not root, and returns the attributes of a process
// of that user; nil = the test does not run as root. PostgreSQL refuses to run as root, and root can
// read every process.
func Unprivileged(t *testing.T, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := osuser.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid) // a number on every system with a root
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	t.Skip("SKIP: this test needs a user other than root")
	return nil
}
