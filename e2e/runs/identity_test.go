package runs

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/e2e/kit"
)

// TestAttach: a run id with the same input attaches to the same run, during the run and afterwards.
func TestAttach(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		question, answer := kit.UserMessage(kit.Marked("Slowly, please.")), kit.LongText(300)
		kit.SharedModel.AnswerInOrder(t, question.Content, kit.SlowAnswer(answer))
		s := kit.Script{ThreadID: kit.NewThread(), Runs: []kit.ScriptedRun{{RunID: "run-1", Messages: []kit.Message{question}}}}
		first := g.Drive(t, kit.Shared, s)
		first.Until(t, "TEXT_MESSAGE_CONTENT", 2)
		s.URL = kit.Shared.URL(kit.AssistantPath)
		second := g.Drive(t, kit.Shared, s)
		want := first.Finish(t)[0].Messages
		kit.WantMessages(t, []kit.Message{question, kit.AssistantMessage(answer)}, want)
		kit.WantMessages(t, want, second.Finish(t)[0].Messages)
		third := g.Drive(t, kit.Shared, s)
		kit.WantMessages(t, want, third.Finish(t)[0].Messages)
		if a, b := fmt.Sprint(first.Types(0)), fmt.Sprint(third.Types(0)); a != b {
			t.Errorf("first events = %s, later events = %s, want the same", a, b)
		}
		if n := len(kit.SharedModel.Calls(t, question.Content)); n != 1 {
			t.Errorf("%d model calls, want 1", n)
		}
	})
}

// TestConcurrentAttach: clients that send the same input concurrently see the same run.
func TestConcurrentAttach(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Once?"))
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(kit.LongText(200)))
	readers := make([]*kit.Follower, 12)
	var g errgroup.Group
	for i := range readers {
		readers[i] = kit.Shared.NewFollower(t, in)
		g.Go(readers[i].Read)
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, f := range readers {
		kit.WantSameEvents(t, fmt.Sprintf("reader %d", i), readers[0].Events, f.Events)
	}
	if n := len(kit.SharedModel.Calls(t, in.Messages[0].Content)); n != 1 {
		t.Errorf("%d model calls, want 1", n)
	}
}

// TestConcurrentInputs: different runs are sent to a thread concurrently. The thread accepts one at
// a time.
func TestConcurrentInputs(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Me?"))
	kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content}, Response: kit.Response{Content: kit.LongText(100)}, ChunkSize: 8, Latency: 25})
	outcomes := make([]error, 12)
	var wait sync.WaitGroup
	for i := range outcomes {
		mine := in
		mine.RunID = fmt.Sprintf("run-%d", i)
		wait.Go(func() { outcomes[i] = kit.Shared.NewFollower(t, mine).Read() })
	}
	wait.Wait()
	taken := 0
	for _, err := range outcomes {
		var refused *kit.StatusError
		switch {
		case err == nil:
			taken++
		case !errors.As(err, &refused) || refused.Status != http.StatusConflict || !strings.Contains(refused.Body, `"busy"`):
			t.Errorf("refusal of a concurrent run: got %v, want busy", err)
		}
	}
	if n := len(kit.SharedModel.Calls(t, in.Messages[0].Content)); taken == 0 || n != taken {
		t.Errorf("accepted runs = %d, model calls = %d, want the same number, at least 1", taken, n)
	}
}

// TestAttachWithOtherSpelling: Perdure compares inputs by value, not by their JSON text.
func TestAttachWithOtherSpelling(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Once?"))
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.FastAnswer(kit.Marked("Once.")))
	all := kit.Shared.Run(t, in)
	m := in.Messages[0]
	spelled := fmt.Sprintf(`{ "messages": [ {"role":"user", "content":%q, "id":%q} ], "runId":"run-1",
		"protocolVersion":"1.0", "threadId":%q }`, m.Content, m.ID, in.ThreadID)
	resp, err := kit.Shared.Post(t.Context(), kit.AssistantPath, spelled)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := kit.ReadEvents(resp)
	if err != nil {
		t.Fatal(err)
	}
	f := kit.Shared.NewFollower(t, in)
	f.Stream = stream
	f.Finish(t)
	kit.WantSameEvents(t, "the input spelled differently", all, f.Events)
}

func TestRunIDReused(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Slowly, please."))
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(kit.LongText(300)))
	f := kit.Shared.Follow(t, in)
	f.UntilContent(t, 1)
	other := in
	other.Messages = []kit.Message{kit.UserMessage(kit.Marked("Something else."))}
	refuse := func(when string) {
		t.Helper()
		resp, err := kit.Shared.Post(t.Context(), kit.AssistantPath, other)
		if p := kit.ReadProblem(t, resp, err); p.Status != 409 || p.Code != "run_id_reused" {
			t.Errorf("%s: %d %s, want 409 run_id_reused", when, p.Status, p.Code)
		}
	}
	refuse("while it runs")
	f.Finish(t)
	refuse("afterwards")
	if n := len(kit.SharedModel.Calls(t, other.Messages[0].Content)); n != 0 {
		t.Errorf("number of model calls for a refused input = %d, want none", n)
	}
}

func TestBusyThread(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		in := kit.NewInput(kit.Marked("Slowly, please."))
		kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(kit.LongText(4_500))) // long enough for slow clients to start
		f := kit.Shared.Follow(t, in)
		f.UntilContent(t, 1)
		next := in
		next.RunID, next.Messages = "run-2", append(slices.Clone(in.Messages), kit.UserMessage(kit.Marked("Already?")))
		resp, err := kit.Shared.Post(t.Context(), kit.AssistantPath, next)
		if p := kit.ReadProblem(t, resp, err); p.Status != 409 || p.Code != "busy" || p.ActiveRun != in.RunID {
			t.Errorf("%d %s, active run %q, want 409 busy with run-1", p.Status, p.Code, p.ActiveRun)
		}
		d := g.Drive(t, kit.Shared, kit.Script{ThreadID: in.ThreadID, Runs: []kit.ScriptedRun{{RunID: "run-3", Messages: next.Messages}}}).Tolerate("HTTP 409")
		for l, err := d.Next(t); ; l, err = d.Next(t) {
			if err != nil {
				t.Fatal(err)
			}
			if l.Type != "end" {
				continue
			}
			if l.Outcome != "rejected" || !strings.Contains(l.Error, "409") {
				t.Errorf("promise of the client was %s: %s, want rejected with 409", l.Outcome, l.Error)
			}
			break
		}
		if status := kit.Shared.Cancel(t, in); status != http.StatusAccepted {
			t.Errorf("cancel: got %d, want %d", status, http.StatusAccepted)
		}
		f.Finish(t)
	})
}

// TestIDs: ids are any text of up to 1000 bytes. In a URL each id is one percent-encoded segment.
func TestIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"a/b", "/", "a/../b", ".", "..", "a.b.*.>", "*", ">", "~abc", "with space", " ", "100%", "%2F", "a/b%2Fc", "a+b", "a/b+c",
		"日本語 ñ", "e\u0301", "🌍", "\"quoted\" \\ <&>", "?q=1#x", "null", strings.Repeat("x", 1000), strings.Repeat("é", 500),
	} {
		t.Run(fmt.Sprintf("%.20q", id), func(t *testing.T) {
			t.Parallel()
			in := kit.NewInput(kit.Marked("Who?"))
			kit.SharedModel.AnswerWith(t, in.Messages[0].Content, kit.Marked("You."))
			in.ThreadID += id
			in.ThreadID = strings.ToValidUTF8(in.ThreadID[:min(len(in.ThreadID), 1000)], "")
			in.RunID = id
			all := kit.Shared.Run(t, in)
			if got := all[0].Member("runId"); got != id {
				t.Errorf("run of RUN_STARTED = %q, want %q", got, id)
			}
			if got := all[0].Member("threadId"); got != in.ThreadID {
				t.Errorf("RUN_STARTED has thread %q, want %q", got, in.ThreadID)
			}
			f := kit.Shared.FollowAfter(t, in, all[:1])
			f.Finish(t)
			kit.WantSameEvents(t, "after the first event", all, f.Events)
			if got := kit.Shared.Cancel(t, in); got != http.StatusAccepted {
				t.Errorf("cancel: %d, want 202", got)
			}
		})
	}
}

// TestIDEncodings: clients encode a segment in more than one way.
func TestIDEncodings(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Who?"))
	kit.SharedModel.AnswerWith(t, in.Messages[0].Content, kit.Marked("You."))
	in.RunID = "a/b+c d(e)!"
	all := kit.Shared.Run(t, in)
	for name, encoded := range map[string]string{
		"PathEscape":         url.PathEscape(in.RunID),
		"encodeURIComponent": "a%2Fb%2Bc%20d(e)!",
		"everything":         "%61%2F%62%2B%63%20%64%28%65%29%21",
	} {
		resp, err := kit.Shared.Get(t.Context(), "/v1/threads/"+in.ThreadID+"/runs/"+encoded+"/events", all[len(all)-2].ID)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "RUN_FINISHED") {
			t.Errorf("%s: got %s %s, want RUN_FINISHED", name, resp.Status, body)
		}
	}
}
