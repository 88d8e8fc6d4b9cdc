package activities_test

import (
	"context"
	"iter"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/internal/control/usage"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// titled is a thread whose run has ended, and whose title is to be written. Its agent's model answers
// "hi".
type titled struct {
	*fixture
	requests []*llm.Request // to the model for titles
	in       runs.TitleInput
}

// setupTitle returns a thread that begins with a message. answer is the script of the model for
// titles.
func setupTitle(t *testing.T, message string, answer script) *titled {
	t.Helper()
	var f titled
	f.fixture = setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if req.Model != "small" {
			return textAnswer("hi")
		}
		f.requests = append(f.requests, req)
		return answer(n-1, req)
	})
	f.run(message)
	f.agent.TitleModel = "test/small"
	first, err := f.log.First(t.Context(), f.log.ThreadSubject(run.Thread)+".>", 1)
	if err != nil {
		t.Fatal(err)
	}
	f.in = runs.TitleInput{Step: runs.Step{Run: runs.Ref{Tenant: "default", Thread: "t1", ID: "r1"}, Execution: "x", Agent: "a", ID: "title"}, Input: first.Seq}
	return &f
}

// write makes an attempt to write the title.
func (f *titled) write() error {
	f.t.Helper()
	env := newActivityEnv()
	env.SetDataConverter(&f.history)
	f.acts.Register(env)
	_, err := env.ExecuteActivity(runs.ActivityWriteTitle, f.in)
	if err != nil {
		f.history.record(err.Error())
	}
	return err
}

// title returns the title that the index has.
func (f *titled) title() string {
	f.t.Helper()
	entry, err := f.log.Entry(f.t.Context(), run.Thread)
	if err != nil || entry == nil {
		f.t.Fatalf("entry of the thread: %v, %v", entry, err)
	}
	return entry.Title()
}

// titleAnswer returns a script that always answers with a text.
func titleAnswer(text string) script {
	return func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer(text) }
}

func TestModelWritesTitleFromFirstMessage(t *testing.T) {
	t.Parallel()
	f := setupTitle(t, " "+strings.Repeat("ä", 5000), titleAnswer("\n“**Umlauts** \u202e of all kinds”\n\nI chose this title because …"))
	if err := f.write(); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "title", f.title(), "Umlauts of all kinds")
	mustEqual(t, "calls of the model for titles", len(f.requests), 1)
	req := f.requests[0]
	mustEqual(t, "number of messages sent", len(req.Messages), 2)
	wantEqual(t, "message sent", req.Messages[1].Text(), "<message>\n"+strings.Repeat("ä", 2000)+"\n</message>")
	if req.MaxOutputTokens == nil || *req.MaxOutputTokens != 1000 || len(req.Tools) > 0 {
		t.Errorf("request: got %+v, want at most 1000 tokens of output and no tools", req)
	}
	if text := f.history.String(); strings.Contains(text, "Umlauts") || strings.Contains(text, "ää") {
		t.Errorf("data of Temporal: got\n%s, want no content", text)
	}
	wantEqual(t, "number of messages in the conversation", len(f.conversation()), 2)
}

// TestGivenTitleIsKept: a title that a caller has set is shown in place of the model's, whichever
// comes first. Without it the model's is shown again.
func TestGivenTitleIsKept(t *testing.T) {
	t.Parallel()
	f := setupTitle(t, "hello", titleAnswer("A greeting"))
	if _, err := f.log.SetTitle(t.Context(), run.Thread, "Mine"); err != nil {
		t.Fatal(err)
	}
	if err := f.write(); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "title", f.title(), "Mine")
	if _, err := f.log.SetTitle(t.Context(), run.Thread, ""); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "title", f.title(), "A greeting")
}

func TestNoTitleIsWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message string
		prepare func(*titled) error
		title   string // afterwards; the derived one
	}{
		"the message has no text":  {message: "  ", title: ""},
		"the agent has no title":   {"hello", func(f *titled) error { f.agent.TitleModel = ""; return nil }, "hello"},
		"the run is not the first": {"hello", func(f *titled) error { f.in.Input++; return nil }, "hello"},
		"the tenant's day is used up": {"hello", func(f *titled) error {
			f.acts.Budget = openLedgerAtNoon(f.t, f.log, budget.Day{Amounts: budget.AmountsOf(1, 0)})
			return f.use(1)
		}, "hello"},
		"no worker has the provider": {"hello", func(f *titled) error { f.agent.TitleModel = "other/small"; return nil }, "hello"},
		"the run was cancelled": {"hello", func(f *titled) error {
			_, err := f.log.RequestCancel(f.t.Context(), run, stream.Cancel{})
			return err
		}, "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupTitle(t, c.message, titleAnswer("A greeting"))
			if c.prepare != nil {
				if err := c.prepare(f); err != nil {
					t.Fatal(err)
				}
			}
			_ = f.write()
			wantEqual(t, "title", f.title(), c.title)
			wantEqual(t, "calls of the model for titles", len(f.requests), 0)
		})
	}
}

// use counts tokens in the day of the tenant.
func (f *titled) use(tokens int64) error {
	return f.acts.Budget.Count(f.t.Context(), "default", "earlier", budget.Use{Tokens: tokens})
}

// TestTitleOfDeletedThread: attempts write nothing after the deletion of their thread, also if it is
// deleted during the call.
func TestTitleOfDeletedThread(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]bool{"before the call": false, "during the call": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f *titled
			purge := func() {
				if err := f.acts.Snapshots.Purge(t.Context(), run.Thread); err != nil {
					t.Error(err)
				}
			}
			f = setupTitle(t, "hello", func(int, *llm.Request) ([]llm.Chunk, error) {
				purge()
				return textAnswer("A greeting")
			})
			if !during {
				purge()
			}
			if err := f.write(); (err != nil) != during {
				t.Errorf("attempt: got %v, want an error if it is fenced", err)
			}
			if err := f.write(); err != nil {
				t.Errorf("later attempt: got %v", err)
			}
			last, err := f.log.LastOf(t.Context(), run.Thread)
			if err != nil || last != 0 {
				t.Errorf("last record of the thread: got %d, %v, want none", last, err)
			}
		})
	}
}

// TestTitleIsCalledOnce: repeated attempts call the model once, and count it once, in the tenant's
// day and in the report of usage. The title is no run.
func TestTitleIsCalledOnce(t *testing.T) {
	t.Parallel()
	f := setupTitle(t, "hello", titleAnswer("A greeting"))
	var err error
	if f.acts.Usage, err = usage.Open(t.Context(), f.log); err != nil {
		t.Fatal(err)
	}
	f.acts.Prices = prices(t)
	f.acts.Budget = openLedgerAtNoon(t, f.log, budget.Day{Amounts: budget.AmountsOf(13, 0)})
	for range 3 {
		if err := f.write(); err != nil {
			t.Fatal(err)
		}
	}
	wantEqual(t, "title", f.title(), "A greeting")
	wantEqual(t, "calls of the model for titles", len(f.requests), 1)
	want := []usage.Item{{Tenant: "default", Agent: "a", Model: "test/m", InputTokens: 10, OutputTokens: 2, TotalTokens: 12}}
	if diff := cmp.Diff(want, f.usageOfToday()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if _, err := f.acts.Budget.Check(t.Context(), "default", nil); err != nil {
		t.Errorf("Check of a budget of 13 after 12 tokens: got %v", err)
	}
	if err := f.use(1); err != nil {
		t.Fatal(err)
	}
	if _, err := f.acts.Budget.Check(t.Context(), "default", nil); err == nil {
		t.Error("Check of a budget of 13 after 13 tokens: got no error, want ErrExceeded")
	}
}

// TestFailedTitleCall: a call that may have been billed is not repeated, except after the death of its
// worker, and it is counted. A call that the provider has refused is free, and is repeated.
func TestFailedTitleCall(t *testing.T) {
	t.Parallel()
	long := llm.TextDelta{Text: strings.Repeat("long ", 16)} // 20 tokens
	for name, c := range map[string]struct {
		first       func(ctx context.Context, yield func(llm.Chunk, error) bool)
		wantTitle   string
		wantCalls   int32
		isEstimated bool // the report has an estimate of the first call
		wantOutput  int64
	}{
		"the answer is cut": {func(_ context.Context, yield func(llm.Chunk, error) bool) {
			_ = yield(long, nil) && yield(nil, &llm.Error{Code: llm.CodeUnavailable})
		}, "hello", 1, true, 20},
		"the provider refuses the request": {func(_ context.Context, yield func(llm.Chunk, error) bool) {
			yield(nil, &llm.Error{Code: llm.CodeRateLimited, Status: 429})
		}, "A greeting", 2, false, 2},
		"the worker dies": {func(ctx context.Context, _ func(llm.Chunk, error) bool) {
			httptrace.ContextClientTrace(ctx).GotConn(httptrace.GotConnInfo{}) // as net/http does
			panic("the worker dies")
		}, "A greeting", 2, true, 2},
		"the run is cancelled": {func(ctx context.Context, yield func(llm.Chunk, error) bool) {
			if yield(long, nil) {
				<-ctx.Done()
				yield(nil, ctx.Err())
			}
		}, "hello", 1, true, 20},
		"the answer is long": {func(_ context.Context, yield func(llm.Chunk, error) bool) {
			_ = yield(llm.TextDelta{Text: "One line\n"}, nil) && yield(llm.TextDelta{Text: strings.Repeat("x", 8000)}, nil) && yield(long, nil)
		}, "One line", 1, true, 2003},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupTitle(t, "hello", titleAnswer("A greeting"))
			var calls atomic.Int32
			good := f.acts.Models["test"]
			f.acts.Models["test"] = llm.ModelFunc(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Chunk, error] {
				if calls.Add(1) > 1 {
					return good.Stream(ctx, req)
				}
				if name == "the run is cancelled" {
					if err := f.log.AnnounceCancel(run); err != nil {
						t.Error(err)
					}
				}
				return func(yield func(llm.Chunk, error) bool) { c.first(ctx, yield) }
			})
			var err error
			if f.acts.Usage, err = usage.Open(t.Context(), f.log); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				_ = f.write()
			}
			wantEqual(t, "title", f.title(), c.wantTitle)
			wantEqual(t, "calls of the model for titles", calls.Load(), c.wantCalls)
			var input, output int64
			for _, item := range f.usageOfToday() {
				input, output = input+item.InputTokens, output+item.OutputTokens
			}
			wantEqual(t, "output tokens", output, c.wantOutput)
			wantEqual(t, "input tokens are estimated", input > 50, c.isEstimated)
		})
	}
}
