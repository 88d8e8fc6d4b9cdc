package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/agui"
)

// dead is what attempts say that die.
const dead = "gone:" + mark + " "

// lifetime is how often they say it: minutes, so that none comes to its end before it is killed.
const lifetime = 4000

// withdrawn is what a client warns about when a tool call is withdrawn: the call goes with a
// snapshot and ends behind it, so that nobody acts on truncated arguments.
const withdrawn = agui.EventToolCallEnd

// crashed is a run that lives through two kills: two attempts die in the middle, the third is good.
type crashed struct {
	in     input
	want   []message
	reader *follower
	client *driven // nil = a reader in Go
}

// The process is killed in mid-stream, twice, and started again. Every reader, of whatever kind,
// goes on where it was, sees what the dead attempts said withdrawn by legal events, and ends with
// the right messages.
func TestKill(t *testing.T) {
	p := startPerdure(t)
	before := newInput(say("Before?"))
	sharedModel.answerWith(t, before.Messages[0].Content, say("Before."))
	settled := p.run(t, before)

	var runs []*crashed
	for i := range 17 {
		runs = append(runs, startCrashed(t, p.endpoint, i))
	}
	for _, g := range generations {
		runs = append(runs, driveCrashed(t, p, 0, g), driveCrashed(t, p, 1, g))
	}
	for kill := range 2 {
		for _, r := range runs {
			r.midStream(t)
		}
		p.kill()
		p.start(t)
		ready := time.Now()
		for _, r := range runs {
			r.midStream(t)
		}
		if took := time.Since(ready); took > 3*time.Second {
			t.Errorf("kill %d: it took %s from readiness until all runs went on", kill+1, took)
		}
	}
	for _, r := range runs {
		r.finish(t, p.endpoint)
	}
	same(t, "a run that ended before the kills", settled, p.run(t, before))
	goesOn(t, p, runs[0])
	foreignCursor(t, p, before)
}

// The process is killed while runs begin, call tools and end. Wherever that hits one, it ends
// right, and what it had finished is not done again.
func TestKillAnywhere(t *testing.T) {
	p := startPerdure(t)
	const runs = 15
	for round, killAt := range []int64{1, 60, 150} {
		var readers []*follower
		for range runs {
			in := newInput(say("Use your tools."))
			useCalculator(t, in.Messages[0].Content, say("Done."))
			readers = append(readers, p.reader(t, in))
		}
		var events atomic.Int64
		reached := make(chan struct{})
		var g errgroup.Group
		for _, f := range readers {
			g.Go(func() error {
				for {
					e, err := f.next()
					if err != nil || e.terminal() {
						f.cut()
						return err
					}
					if events.Add(1) == killAt {
						close(reached)
					}
				}
			})
		}
		select {
		case <-reached:
		case <-time.After(patience):
			t.Fatalf("round %d: only %d events", round, events.Load())
		}
		p.kill()
		p.start(t)
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, f := range readers {
			endedRight(t, round, f)
		}
	}
}

func endedRight(t *testing.T, round int, f *follower) {
	t.Helper()
	got := show(t, f.in.Messages, f.events, withdrawn)
	if last := got[len(got)-1]; len(got) != 4 || got[2].Content != "42" || !strings.HasSuffix(last.Content, "Done.") {
		t.Errorf("round %d: messages %+v", round, got)
	}
	finished := 0
	for _, e := range f.events {
		if e.Type == "RUN_STARTED" || e.Type == "RUN_FINISHED" {
			finished++
		}
	}
	if finished != 2 {
		t.Errorf("round %d: %q", round, lines(f.events))
	}
	// Two calls, and one more for each attempt that the kill may have cut.
	if n := len(sharedModel.calls(t, f.in.Messages[0].Content)); n < 2 || n > 3 {
		t.Errorf("round %d: %d model calls", round, n)
	}
}

// startCrashed starts a run and reads it.
func startCrashed(t *testing.T, p *endpoint, kind int) *crashed {
	t.Helper()
	r := newCrashed(t, kind)
	r.reader = p.follow(t, r.in)
	return r
}

// driveCrashed starts a run with a stock client.
func driveCrashed(t *testing.T, p *perdure, kind int, g generation) *crashed {
	t.Helper()
	r := newCrashed(t, kind)
	r.client = g.drive(t, p, script{
		ThreadID: r.in.ThreadID, Runs: []scriptedRun{{RunID: r.in.RunID, Messages: r.in.Messages}},
		Reconnect: &reconnectRule{Addresses: p.addressFile()},
	}).tolerate("No message found containing tool call")
	return r
}

// newCrashed scripts a run that dies in its text, in the arguments of a tool call or in its
// thoughts.
func newCrashed(t *testing.T, kind int) *crashed {
	t.Helper()
	r := &crashed{in: newInput(say("Slowly, please."))}
	prompt, answer := r.in.Messages[0].Content, long(300)
	r.want = append(slices.Clone(r.in.Messages), says(answer))
	dying := []fixture{pours(strings.Repeat(dead, lifetime)), pours(strings.Repeat(dead, lifetime))}
	if kind%4 == 1 {
		for i := range dying {
			arguments := `{"` + dead + `":"` + strings.Repeat(dead, lifetime) + `"}`
			dying[i].Response = response{ToolCalls: []modelCall{{Name: "calculate", Arguments: arguments}}}
		}
	}
	if kind%4 == 2 {
		for i := range dying {
			dying[i].Response = response{Reasoning: strings.Repeat(dead, lifetime), Content: say("Thought over.")}
		}
	}
	sharedModel.attempts(t, prompt, append(dying, pours(answer))...)
	return r
}

// midStream waits until some more of an answer has come: text, arguments or thoughts.
func (r *crashed) midStream(t *testing.T) {
	t.Helper()
	piece := func(eventType string) bool {
		return slices.Contains([]string{"TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT"}, eventType)
	}
	for range 3 {
		if r.client == nil {
			r.reader.until(t, func(e event) bool { return piece(e.Type) })
			continue
		}
		for {
			l, err := r.client.next(t)
			if err != nil || l.Type == "end" {
				t.Fatalf("the client ended: %v %+v", err, l)
			}
			if piece(l.eventType()) {
				break
			}
		}
	}
}

func (r *crashed) finish(t *testing.T, p *endpoint) {
	t.Helper()
	if n := len(sharedModel.calls(t, r.in.Messages[0].Content)); n != 3 {
		t.Errorf("%d model calls, want 3", n)
	}
	if r.client != nil {
		wantMessages(t, r.want, withoutEmptied(r.client.finish(t)[0].Messages))
		return
	}
	r.reader.finish(t)
	all := r.reader.events
	wantMessages(t, r.want, withoutEmptied(show(t, r.in.Messages, all, withdrawn)))
	for i := range all[:len(all)-1] {
		if i%7 != 0 && len(all)-i > 30 {
			continue
		}
		again := p.behind(t, r.in, all[:i+1])
		again.finish(t)
		name := fmt.Sprintf("behind event %d of %d", i, len(all))
		wantMessages(t, r.want, withoutEmptied(show(t, r.in.Messages, again.events, withdrawn)))
		if i > lastWithdrawal(all) {
			same(t, name, all, again.events)
		}
	}
	fresh := p.run(t, r.in)
	for _, e := range fresh {
		if strings.Contains(string(e.Data), dead) {
			t.Errorf("a fresh reader is shown what a dead attempt said: %.200s", e.Data)
			break
		}
	}
	wantMessages(t, r.want, show(t, r.in.Messages, fresh))
}

// lastWithdrawal returns where the last attempt's own events begin, as far as a reader can tell.
func lastWithdrawal(events []event) int {
	for i, e := range slices.Backward(events) {
		if e.Type == "TEXT_MESSAGE_START" {
			return i
		}
	}
	return 0
}

// withoutEmptied drops reasoning that was withdrawn: clients keep such a message, so it is emptied.
func withoutEmptied(messages []message) []message {
	return slices.DeleteFunc(slices.Clone(messages), func(m message) bool { return m.Role == "reasoning" && m.Content == "" })
}

// goesOn checks that a thread takes a run after all that, and that the model hears what holds.
func goesOn(t *testing.T, p *perdure, r *crashed) {
	t.Helper()
	next := r.in
	next.RunID = "run-2"
	next.Messages = append(slices.Clone(show(t, r.in.Messages, r.reader.events)), user(say("And now?")))
	question := next.Messages[len(next.Messages)-1].Content
	sharedModel.answerWith(t, question, say("Now this."))
	p.run(t, next)
	wantHeard(t, sharedModel.calls(t, question)[0], r.want[0].Content, r.want[1].Content, question)
}

// foreignCursor checks that a cursor of another log is told apart from one that is none.
func foreignCursor(t *testing.T, p *perdure, in input) {
	t.Helper()
	elsewhere := newInput(say("Elsewhere?"))
	sharedModel.answerWith(t, elsewhere.Messages[0].Content, say("Here."))
	cursor := shared.run(t, elsewhere)[0].ID
	resp, err := p.get(t.Context(), eventsPath(in), cursor)
	if p := refused(t, resp, err); p.Status != 410 || p.Code != "log_replaced" {
		t.Errorf("a cursor of another log: %d %s, want 410 log_replaced", p.Status, p.Code)
	}
}
