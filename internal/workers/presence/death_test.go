package presence_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/workers/presence"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// workerServer is the environment variable that makes the test's program a worker. Its value is the
// URL of the worker's NATS.
const workerServer = "PRESENCE_TEST_WORKER"

// serveWorker runs a worker with one task until its standard input ends.
func serveWorker(url string) error {
	ctx := context.Background()
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	l, err := stream.Open(ctx, nc, stream.Options{})
	if err != nil {
		return err
	}
	p, err := presence.Start(ctx, l, "victim", presence.NewTasks(), silentTemporal, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if _, err := p.Begin(ctx, []byte("token")); err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString("ready\n"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startProcess starts a worker in a process of its own, and returns when it is present.
func startProcess(t *testing.T, url string) *os.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), workerServer+"="+url), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("the worker says %q: %v, want ready", line, err)
	}
	return cmd.Process
}

// silentTemporal fails tasks without an effect.
var silentTemporal = presence.Temporal{
	Fail:  func(context.Context, string, presence.Task) error { return nil },
	Sweep: func(context.Context, string) (int, error) { return 0, nil },
}

// deaths receives the log lines of workers about dead ones.
type deaths chan string

// Write implements [io.Writer].
func (d deaths) Write(line []byte) (int, error) {
	d <- string(line)
	return len(line), nil
}

// start starts a worker.
func (d deaths) start(t *testing.T, l *stream.Log, worker string) {
	t.Helper()
	p, err := presence.Start(t.Context(), l, worker, presence.NewTasks(), silentTemporal, slog.New(slog.NewTextHandler(d, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background()) })
}

// watchDeaths starts a worker, and returns the log lines about those that it takes for dead.
func watchDeaths(t *testing.T, l *stream.Log, worker string) deaths {
	t.Helper()
	d := make(deaths, 100)
	d.start(t, l, worker)
	return d
}

// want waits until a worker has taken over from a dead one. A line about another one fails the test.
// The signs of the death are words of the log line.
func (d deaths) want(t *testing.T, worker string, signs ...string) {
	t.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case line := <-d:
			if !strings.Contains(line, "worker="+worker+" ") {
				t.Fatalf("log line = %s, want none about another worker than %s", line, worker)
			}
			if !strings.Contains(line, "took over from a dead worker") {
				continue // it tries again
			}
			for _, words := range signs {
				if !strings.Contains(line, words) {
					t.Fatalf("log line = %s, want text with %q", line, words)
				}
			}
			return
		case <-late:
			t.Fatalf("the death of %s is not noticed", worker)
		}
	}
}

// TestSignsOfDeath: a killed process is found by refused probes, before it has missed four beats. A
// hung process, whose connection stays, is found by its missed beats.
func TestSignsOfDeath(t *testing.T) {
	t.Parallel()
	for signal, sign := range map[syscall.Signal]string{syscall.SIGKILL: "refused probes", syscall.SIGSTOP: "missed beats"} {
		t.Run(sign, func(t *testing.T) {
			t.Parallel()
			s := streamtest.Server(t)
			found := watchDeaths(t, streamtest.OpenOn(t, s), "survivor")
			victim := startProcess(t, s.ClientURL())
			awaitAnswer(t, s, "survivor", "victim")
			if err := victim.Signal(signal); err != nil {
				t.Fatal(err)
			}
			found.want(t, "victim", `sign="`+sign+`"`, "tasks=1")
		})
	}
}

// awaitAnswer waits until a worker has answered a probe of another one.
func awaitAnswer(t *testing.T, s *server.Server, asking, asked string) {
	t.Helper()
	l := streamtest.OpenOn(t, s)
	sub, err := l.Conn().SubscribeSync(l.WorkerSubject(asking) + ".answer." + asked)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sub.NextMsg(time.Minute); err != nil {
		t.Fatalf("%s has not answered %s: %v", asked, asking, err)
	}
	if err := sub.Unsubscribe(); err != nil { // a dead worker's probes have no receiver
		t.Fatal(err)
	}
	if err := l.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestWorkerWithoutProbes: another program, or permissions of NATS, may keep a live worker from
// answering. Its refused probes do not count: it is dead when it misses four beats.
func TestWorkerWithoutProbes(t *testing.T) {
	t.Parallel()
	l := streamtest.Open(t)
	found := watchDeaths(t, l, "survivor")
	kv, err := l.KeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "workers"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(t.Context(), "beat.other", "other"); err != nil {
		t.Fatal(err)
	}
	found.want(t, "other", `sign="missed beats"`)
}

// TestProbesWithoutPermissions: a worker whose user of NATS lacks the permissions for probes tries
// them once. It works without them.
func TestProbesWithoutPermissions(t *testing.T) {
	t.Parallel()
	denied := &server.SubjectPermission{Deny: []string{"perdure-worker.>"}}
	s := streamtest.ServerWith(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "restricted", Password: "password", Permissions: &server.Permissions{Publish: denied, Subscribe: denied}}}
	})
	violations := make(chan error, 100)
	open := func() *stream.Log {
		nc, err := nats.Connect(s.ClientURL(), nats.UserInfo("restricted", "password"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { violations <- err }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		l, err := stream.Open(t.Context(), nc, stream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	found := watchDeaths(t, open(), "survivor")
	victim := open()
	watchDeaths(t, victim, "victim")
	victim.Conn().Close()
	found.want(t, "victim", `sign="missed beats"`)
	const perWorker = 2 // the subscription and one probe
	if n := len(violations); n > 2*perWorker {
		t.Errorf("violations of permissions = %d, want at most %d", n, 2*perWorker)
	}
}
