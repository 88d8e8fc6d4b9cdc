package e2e

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
)

// The same run id with the same input is the same run, while it runs and for ever after.
func TestAttach(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		question, answer := user(say("Slowly, please.")), long(300)
		sharedModel.attempts(t, question.Content, pours(answer))
		s := script{ThreadID: newThread(), Runs: []scriptedRun{{RunID: "run-1", Messages: []message{question}}}}
		first := g.drive(t, shared, s)
		first.until(t, "TEXT_MESSAGE_CONTENT", 2)
		s.URL = shared.url(assistant)
		second := g.drive(t, shared, s)
		want := first.finish(t)[0].Messages
		wantMessages(t, []message{question, says(answer)}, want)
		wantMessages(t, want, second.finish(t)[0].Messages)
		third := g.drive(t, shared, s)
		wantMessages(t, want, third.finish(t)[0].Messages)
		if a, b := fmt.Sprint(first.types(0)), fmt.Sprint(third.types(0)); a != b {
			t.Errorf("at first %s, afterwards %s", a, b)
		}
		if n := len(sharedModel.calls(t, question.Content)); n != 1 {
			t.Errorf("%d model calls, want 1", n)
		}
	})
}

// Whoever sends the same input at the same time is shown the same run.
func TestAttachAtOnce(t *testing.T) {
	t.Parallel()
	in := newInput(say("Once?"))
	sharedModel.attempts(t, in.Messages[0].Content, pours(long(200)))
	readers := make([]*follower, 12)
	var g errgroup.Group
	for i := range readers {
		readers[i] = shared.reader(t, in)
		g.Go(readers[i].read)
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, f := range readers {
		same(t, fmt.Sprintf("reader %d", i), readers[0].events, f.events)
	}
	if n := len(sharedModel.calls(t, in.Messages[0].Content)); n != 1 {
		t.Errorf("%d model calls, want 1", n)
	}
}

// Of different runs offered to a thread at the same time, one is taken at a time.
func TestOffersAtOnce(t *testing.T) {
	t.Parallel()
	in := newInput(say("Me?"))
	sharedModel.answer(t, fixture{Match: match{UserMessage: in.Messages[0].Content}, Response: response{Content: long(100)}, ChunkSize: 8, Latency: 25})
	outcomes := make([]error, 12)
	var wait sync.WaitGroup
	for i := range outcomes {
		mine := in
		mine.RunID = fmt.Sprintf("run-%d", i)
		wait.Go(func() { outcomes[i] = shared.reader(t, mine).read() })
	}
	wait.Wait()
	taken := 0
	for _, err := range outcomes {
		var refused *statusError
		switch {
		case err == nil:
			taken++
		case !errors.As(err, &refused) || refused.status != http.StatusConflict || !strings.Contains(refused.body, `"busy"`):
			t.Error(err)
		}
	}
	if n := len(sharedModel.calls(t, in.Messages[0].Content)); taken == 0 || n != taken {
		t.Errorf("%d runs taken, %d model calls", taken, n)
	}
}

// What is compared is the input, not its spelling.
func TestAttachWithOtherSpelling(t *testing.T) {
	t.Parallel()
	in := newInput(say("Once?"))
	sharedModel.attempts(t, in.Messages[0].Content, answers(say("Once.")))
	all := shared.run(t, in)
	m := in.Messages[0]
	spelled := fmt.Sprintf(`{ "messages": [ {"role":"user", "content":%q, "id":%q} ], "runId":"run-1",
		"protocolVersion":"1.0", "threadId":%q }`, m.Content, m.ID, in.ThreadID)
	resp, err := shared.post(t.Context(), assistant, spelled)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := readEvents(resp)
	if err != nil {
		t.Fatal(err)
	}
	f := shared.reader(t, in)
	f.stream = stream
	f.finish(t)
	same(t, "the input spelled differently", all, f.events)
}

func TestRunIDReused(t *testing.T) {
	t.Parallel()
	in := newInput(say("Slowly, please."))
	sharedModel.attempts(t, in.Messages[0].Content, pours(long(300)))
	f := shared.follow(t, in)
	f.contents(t, 1)
	other := in
	other.Messages = []message{user(say("Something else."))}
	refuse := func(when string) {
		t.Helper()
		resp, err := shared.post(t.Context(), assistant, other)
		if p := refused(t, resp, err); p.Status != 409 || p.Code != "run_id_reused" {
			t.Errorf("%s: %d %s, want 409 run_id_reused", when, p.Status, p.Code)
		}
	}
	refuse("while it runs")
	f.finish(t)
	refuse("afterwards")
	if n := len(sharedModel.calls(t, other.Messages[0].Content)); n != 0 {
		t.Errorf("the model was called %d times for what was refused", n)
	}
}

func TestBusyThread(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		in := newInput(say("Slowly, please."))
		sharedModel.attempts(t, in.Messages[0].Content, pours(long(4_500))) // clients take their time to start
		f := shared.follow(t, in)
		f.contents(t, 1)
		next := in
		next.RunID, next.Messages = "run-2", append(slices.Clone(in.Messages), user(say("Already?")))
		resp, err := shared.post(t.Context(), assistant, next)
		if p := refused(t, resp, err); p.Status != 409 || p.Code != "busy" || p.ActiveRun != in.RunID {
			t.Errorf("%d %s, active run %q, want 409 busy with run-1", p.Status, p.Code, p.ActiveRun)
		}
		d := g.drive(t, shared, script{ThreadID: in.ThreadID, Runs: []scriptedRun{{RunID: "run-3", Messages: next.Messages}}}).tolerate("HTTP 409")
		for l, err := d.next(t); ; l, err = d.next(t) {
			if err != nil {
				t.Fatal(err)
			}
			if l.Type != "end" {
				continue
			}
			if l.Outcome != "rejected" || !strings.Contains(l.Error, "409") {
				t.Errorf("the client's promise was %s: %s", l.Outcome, l.Error)
			}
			break
		}
		if status := shared.cancel(t, in); status != http.StatusAccepted {
			t.Errorf("cancel: %d", status)
		}
		f.finish(t)
	})
}

// Ids are any text of up to 1000 bytes; in a URL each is one percent-encoded segment.
func TestIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"a/b", "/", "a/../b", ".", "..", "a.b.*.>", "*", ">", "~abc", "with space", " ", "100%", "%2F", "a/b%2Fc", "a+b", "a/b+c",
		"日本語 ñ", "e\u0301", "🌍", "\"quoted\" \\ <&>", "?q=1#x", "null", strings.Repeat("x", 1000), strings.Repeat("é", 500),
	} {
		t.Run(fmt.Sprintf("%.20q", id), func(t *testing.T) {
			t.Parallel()
			in := newInput(say("Who?"))
			sharedModel.answerWith(t, in.Messages[0].Content, say("You."))
			in.ThreadID += id
			in.ThreadID = strings.ToValidUTF8(in.ThreadID[:min(len(in.ThreadID), 1000)], "")
			in.RunID = id
			all := shared.run(t, in)
			if got := all[0].member("runId"); got != id {
				t.Errorf("RUN_STARTED says run %q", got)
			}
			if got := all[0].member("threadId"); got != in.ThreadID {
				t.Errorf("RUN_STARTED says thread %q, want %q", got, in.ThreadID)
			}
			f := shared.behind(t, in, all[:1])
			f.finish(t)
			same(t, "behind the first event", all, f.events)
			if got := shared.cancel(t, in); got != http.StatusAccepted {
				t.Errorf("cancel: %d, want 202", got)
			}
		})
	}
}

// A segment is encoded in more than one way by the clients there are.
func TestIDEncodings(t *testing.T) {
	t.Parallel()
	in := newInput(say("Who?"))
	sharedModel.answerWith(t, in.Messages[0].Content, say("You."))
	in.RunID = "a/b+c d(e)!"
	all := shared.run(t, in)
	for name, encoded := range map[string]string{
		"PathEscape":         url.PathEscape(in.RunID),
		"encodeURIComponent": "a%2Fb%2Bc%20d(e)!",
		"everything":         "%61%2F%62%2B%63%20%64%28%65%29%21",
	} {
		resp, err := shared.get(t.Context(), "/v1/threads/"+in.ThreadID+"/runs/"+encoded+"/events", all[len(all)-2].ID)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "RUN_FINISHED") {
			t.Errorf("%s: %s %s", name, resp.Status, body)
		}
	}
}
