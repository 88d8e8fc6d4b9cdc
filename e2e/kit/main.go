package kit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
)

// Shared serves all tests that do not end their process.
var Shared *Perdure

// Clients read streams for all tests.
var Clients references

// Main runs the tests of one area with what they share: a Perdure, a model server and the reference
// clients. It returns the status to exit with. Each area calls it in its TestMain. Tests run in the
// folder e2e, where testdata and the programs on node are.
func Main(m *testing.M) int {
	if _, err := exec.LookPath("node"); err != nil {
		fmt.Println("SKIP: the clients and the model server of these tests need node, which is not installed")
		return 0
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		code = max(code, 1)
	}
	return code
}

// run brings up what tests share, and looks afterwards at what the shared process leaves behind.
func run(m *testing.M) (code int, err error) {
	if err := os.Chdir(".."); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "perdure-e2e-")
	if err != nil {
		return 1, err
	}
	Programs, histories = cmp.Or(os.Getenv(builtPrograms), filepath.Join(dir, "programs")), filepath.Join(dir, "histories")
	Program = filepath.Join(Programs, "perdure")
	ObservedPrograms = filepath.Join(dir, "observed")
	histories = cmp.Or(os.Getenv("E2E_HISTORIES"), histories)
	if err := errors.Join(os.MkdirAll(Programs, 0o700), os.Mkdir(ObservedPrograms, 0o700), os.MkdirAll(histories, 0o700), prepare()); err != nil {
		return 1, err
	}
	if SharedModel, err = launchModel(); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, SharedModel.Stop()) }()
	if recorded, err = NewRecorder(filepath.Join(dir, "streams")); err != nil {
		return 1, err
	}
	if Clients, err = launchReferences(); err != nil {
		return 1, err
	}
	ctx := context.Background()
	Shared = NewPerdure(filepath.Join(dir, "shared"), SharedModel)
	if err := Shared.Launch(ctx); err != nil {
		return 1, err
	}
	code = m.Run()
	err = errors.Join(Shared.Conclude(ctx), judgeStreams(), Clients.Stop())
	if err == nil && code == 0 {
		http.DefaultClient.CloseIdleConnections()
		err = goleak.Find()
	}
	if err != nil {
		return 1, fmt.Errorf("%w\nhistories are in %s, output of perdure:\n%s", err, histories, Shared.Output.String())
	}
	if code != 0 {
		fmt.Printf("output of the shared perdure:\n%s", Shared.Output.String())
	}
	return code, os.RemoveAll(dir)
}

// judgeStreams lets the reference clients read what the tests have read.
func judgeStreams() error {
	begun := time.Now()
	n, err := recorded.Judge(Clients)
	fmt.Printf("the reference clients have read %d streams in %s\n", n, time.Since(begun).Round(time.Millisecond))
	return err
}

// prepare builds the program and installs what runs on node.
func prepare() error {
	var g errgroup.Group
	g.Go(func() error { return build("./cmd/perdure") })
	g.Go(func() error {
		for _, name := range []string{"v0", "v1", "ws", "model", "copilotkit", "mcp"} {
			if err := Install(filepath.Join("node", name)); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// builtPrograms is the environment variable with a folder of programs that are built already; empty
// = each area builds its own. "make e2e" sets it: linking perdure for each area would take minutes.
const builtPrograms = "E2E_PROGRAMS"

// build builds commands into Programs, unless they are built already.
func build(packages ...string) error {
	if os.Getenv(builtPrograms) != "" {
		return nil
	}
	return Execute("..", "go", append([]string{"build", "-o", Programs + string(filepath.Separator)}, packages...)...)
}

// Install runs npm where the lockfile is newer than what is installed.
func Install(dir string) error {
	lock, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	installed, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json"))
	if err == nil && !installed.ModTime().Before(lock.ModTime()) {
		return nil
	}
	return Execute(dir, "npm", "ci", "--ignore-scripts")
}
