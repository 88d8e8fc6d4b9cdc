package operations

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// TestThreadExpires: a process that gets a time to live removes a thread that is idle, and a thread
// that waits for an approval stays. Afterwards no file of the data directory has content of the
// expired thread.
func TestThreadExpires(t *testing.T) {
	t.Parallel()
	p := startEncrypted(t, firstKey)
	rules := filepath.Join(t.TempDir(), "retention.yaml")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(rules, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("default: {audit: 17520h}") // a round every ten minutes
	p.Env = append(p.Env, "PERDURE_RETENTION_FILE="+rules)
	p.Restart(t)
	in := kit.NewInput(kit.Marked("Remember this."))
	kit.SharedModel.AnswerWith(t, in.Messages[0].Content, kit.Marked("I do."))
	prompt := kit.Marked("Work it out later.")
	kit.ScriptCalculations(t, prompt, kit.Marked("There."), "7+7")
	waiting := p.FollowAgent(t, kit.CarefulPath, kit.NewInput(prompt))
	waiting.Finish(t)
	p.Run(t, in)

	write("default: {threads: 1s}")
	for status := 0; status != http.StatusNotFound; {
		resp, err := p.Get(t.Context(), "/v1/threads/"+in.ThreadID, "")
		if err != nil {
			t.Fatal(err)
		}
		status = resp.StatusCode
		_ = resp.Body.Close()
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the thread did not expire")
		}
	}
	if loaded := p.StartCommand(t, "audit", "--platform", "--action", "retention.load").Finish(t, 0); strings.Count(loaded, "retention.load ") != 2 {
		t.Errorf("entries of the file of rules:\n%s\nwant two", loaded)
	}
	waiting.Approve(t)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	kit.WantNoContent(t, "after the thread expired", p.data)
}

// TestInvalidRetentionFile: a process does not start with a mistake in the file, and names its line.
func TestInvalidRetentionFile(t *testing.T) {
	t.Parallel()
	p := startEncrypted(t, firstKey)
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(t.TempDir(), "retention.yaml")
	if err := os.WriteFile(rules, []byte("default:\n  threads: 30d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := p.Command()
	cmd.Env = append(cmd.Env, "PERDURE_RETENTION_FILE="+rules)
	out, err := cmd.CombinedOutput()
	if want := `line 2: threads: "30d" must be a time such as 720h`; err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "PERDURE_RETENTION_FILE") {
		t.Errorf("got %v, %s, want %q", err, out, want)
	}
}
