package e2e

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

// shared serves all tests that do not end their process.
var shared *perdure

// clients read streams for all tests.
var clients references

func TestMain(m *testing.M) {
	if _, err := exec.LookPath("node"); err != nil {
		fmt.Println("SKIP: the clients and the model server of these tests need node, which is not installed")
		os.Exit(0)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run brings up what tests share, and looks afterwards at what the shared process leaves behind.
func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "perdure-e2e-")
	if err != nil {
		return 1, err
	}
	program, programs, histories = filepath.Join(dir, "perdure"), filepath.Join(dir, "programs"), filepath.Join(dir, "histories")
	observedPrograms = filepath.Join(dir, "observed")
	histories = cmp.Or(os.Getenv("E2E_HISTORIES"), histories)
	if err := errors.Join(os.Mkdir(programs, 0o700), os.Mkdir(observedPrograms, 0o700), os.MkdirAll(histories, 0o700), prepare()); err != nil {
		return 1, err
	}
	if sharedModel, err = launchModel(); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, sharedModel.stop()) }()
	if recorded, err = newRecorder(filepath.Join(dir, "streams")); err != nil {
		return 1, err
	}
	if clients, err = launchReferences(); err != nil {
		return 1, err
	}
	ctx := context.Background()
	shared = newPerdure(filepath.Join(dir, "shared"), sharedModel)
	if err := shared.launch(ctx); err != nil {
		return 1, err
	}
	code = m.Run()
	err = errors.Join(shared.conclude(ctx), judgeStreams(), clients.stop())
	if err == nil && code == 0 {
		http.DefaultClient.CloseIdleConnections()
		err = goleak.Find()
	}
	if err != nil {
		return 1, fmt.Errorf("%w\nhistories are in %s, output of perdure:\n%s", err, histories, shared.output.String())
	}
	if code != 0 {
		fmt.Printf("output of the shared perdure:\n%s", shared.output.String())
	}
	return code, os.RemoveAll(dir)
}

// judgeStreams lets the reference clients read what the tests have read.
func judgeStreams() error {
	begun := time.Now()
	n, err := recorded.judge(clients)
	fmt.Printf("the reference clients have read %d streams in %s\n", n, time.Since(begun).Round(time.Millisecond))
	return err
}

// prepare builds the program and installs what runs on node.
func prepare() error {
	var g errgroup.Group
	g.Go(func() error { return execute("..", "go", "build", "-o", program, "./cmd/perdure") })
	g.Go(func() error {
		for _, name := range []string{"v0", "v1", "ws", "model", "copilotkit", "mcp"} {
			if err := install(filepath.Join("node", name)); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// install runs npm where the lockfile is newer than what is installed.
func install(dir string) error {
	lock, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	installed, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json"))
	if err == nil && !installed.ModTime().Before(lock.ModTime()) {
		return nil
	}
	return execute(dir, "npm", "ci", "--ignore-scripts")
}
