package runs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// TestTerminate: SIGTERM stops the process soon and cleanly although streams are open. They end
// between two frames and without a terminal event, so that clients reconnect. The run continues in
// the next process.
func TestTerminate(t *testing.T) {
	p := kit.Setup(t)
	in, answer := kit.NewInput(kit.Marked("Slowly, please.")), kit.Marked("This is it.")
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(kit.LongText(8000)), kit.FastAnswer(answer))
	var readers []*kit.Follower
	for range 5 {
		f := p.Follow(t, in)
		f.UntilContent(t, 2)
		readers = append(readers, f)
	}
	asked := time.Now()
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped within %s", time.Since(asked))
	for _, f := range readers {
		if err := f.Drain(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ended with %v, want an end between two frames", err)
		}
	}
	if _, err := os.Stat(p.AddressFile()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("addresses.json after the end: got %v, want it removed", err)
	}
	p.Start(t)
	for _, f := range readers {
		f.Finish(t)
		kit.WantMessages(t, append(slices.Clone(in.Messages), kit.AssistantMessage(answer)), kit.ShownMessages(t, in.Messages, f.Events))
	}
}

// TestSecondProcess: only one process can use a data directory.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	second := kit.Shared.Command()
	cmd := exec.CommandContext(ctx, second.Path, second.Args[1:]...)
	cmd.Env = second.Env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("the second process ended with %v, want exit status 1\n%s", err, out)
	}
	if text := string(out); !strings.Contains(text, "is in use by process") || strings.Count(strings.TrimSpace(text), "\n") > 0 {
		t.Errorf("output of the second process:\n%s\nwant one line that the directory is in use", text)
	}
	resp, err := kit.Shared.Get(t.Context(), "/readyz", "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("status of the first process = %s, want 200", resp.Status)
	}
}

// TestInvalidSettings: a user's mistake is reported in one line.
func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args       []string
		want       string
		wantStatus int
	}{
		"no folder":      {[]string{"dev", "--agents", "testdata/agents/assistant.yaml"}, "testdata/agents/assistant.yaml", 1},
		"address":        {[]string{"dev", "--agents", "testdata/agents", "--addr", "nowhere"}, "--addr", 1},
		"log level":      {[]string{"dev", "--log-level", "loud"}, "--log-level", 1},
		"foreign data":   {[]string{"dev", "--agents", "testdata/agents", "--addr", "127.0.0.1:0", "--data", "testdata"}, "testdata", 1},
		"unknown flag":   {[]string{"dev", "--nothing"}, "--nothing", 2},
		"stray argument": {[]string{"dev", "stray"}, "stray", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
			defer cancel()
			out, err := exec.CommandContext(ctx, kit.Program, tt.args...).CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != tt.wantStatus {
				t.Fatalf("it ended with %v, want exit status %d\n%s", err, tt.wantStatus, out)
			}
			if text := string(out); !strings.HasPrefix(text, "perdure: ") || !strings.Contains(text, tt.want) {
				t.Errorf("output:\n%s\nwant one error with %q", text, tt.want)
			}
		})
	}
}
