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
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
)

// Shared is the perdure process of all tests that do not stop their process.
var Shared *Perdure

// ReferenceClients are the reference clients of all tests.
var ReferenceClients referenceClients

// Main runs the tests of one area with their shared parts: a perdure process, a model server and
// the reference clients. It returns the exit status. Each area calls it in its TestMain. Tests run
// in the directory e2e, which has testdata and the node programs.
func Main(m *testing.M) int { return runArea(m, true) }

// MainAlone is like Main for an area whose tests start their own processes: Shared is not started.
func MainAlone(m *testing.M) int { return runArea(m, false) }

// runArea runs the tests of an area, and stops the shared processes.
func runArea(m *testing.M, startShared bool) int {
	if _, err := exec.LookPath("node"); err != nil {
		fmt.Println("SKIP: the clients and the model server of these tests need node, which is not installed")
		return 0
	}
	code, err := run(m, startShared)
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		code = max(code, 1)
	}
	return code
}

// run starts the shared parts, runs the tests, and inspects the shared process.
func run(m *testing.M, startShared bool) (code int, err error) {
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
	if ReferenceClients, err = startReferenceClients(); err != nil {
		return 1, err
	}
	ctx := context.Background()
	Shared = NewPerdure(filepath.Join(dir, "shared"), SharedModel)
	if startShared {
		if err := Shared.Launch(ctx); err != nil {
			return 1, err
		}
	}
	code = m.Run()
	err = errors.Join(sharedBrowser.stop(), Shared.InspectAndStop(ctx), verifyStreams(), ReferenceClients.Stop())
	if err == nil && code == 0 {
		http.DefaultClient.CloseIdleConnections()
		err = goleak.Find()
	}
	if err != nil {
		return 1, fmt.Errorf("%w\nhistories are in %s, output of perdure:\n%s", err, histories, Shared.Output.String())
	}
	if code != 0 && startShared {
		fmt.Printf("output of the shared perdure:\n%s", Shared.Output.String())
	}
	return code, os.RemoveAll(dir)
}

// verifyStreams makes the reference clients read the streams that the tests have read.
func verifyStreams() error {
	begun := time.Now()
	n, err := recorded.Verify(ReferenceClients)
	fmt.Printf("the reference clients have read %d streams in %s\n", n, time.Since(begun).Round(time.Millisecond))
	return err
}

// prepare builds perdure and installs the node packages.
func prepare() error {
	var g errgroup.Group
	g.Go(func() error {
		if err := packClient(); err != nil {
			return err
		}
		return build("./cmd/perdure")
	})
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

// builtPrograms is the environment variable with a directory of built programs; empty = each area
// builds its own. "make e2e" sets it, since linking perdure for each area would take minutes.
const builtPrograms = "E2E_PROGRAMS"

// clientPackage is the npm package of the TypeScript client, which perdure embeds.
var clientPackage = filepath.Join("..", "internal", "starter", "client", "perdure-client.tgz")

// packClient makes clientPackage, unless builtPrograms is set. Areas that run in parallel wait for
// each other, because make writes to the checkout.
func packClient() error {
	if os.Getenv(builtPrograms) != "" {
		return nil
	}
	checkout, err := os.Open(filepath.Join("..", "Makefile"))
	if err != nil {
		return err
	}
	defer checkout.Close()
	if err := syscall.Flock(int(checkout.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", checkout.Name(), err)
	}
	return Execute("..", "make", "--silent", "internal/starter/client/perdure-client.tgz")
}

// build builds commands into Programs, unless builtPrograms is set.
func build(packages ...string) error {
	if os.Getenv(builtPrograms) != "" {
		return nil
	}
	return Execute("..", "go", append([]string{"build", "-o", Programs + string(filepath.Separator)}, packages...)...)
}

// installing is held during an installation: parallel tests need the same packages.
var installing sync.Mutex

// Install runs npm ci if the lockfile is newer than the installed packages. It may be called
// concurrently.
func Install(dir string) error {
	installing.Lock()
	defer installing.Unlock()
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
