package clients

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// A run asks, and one that waits for somebody else's decision goes on when that has come from
// another process.
func TestCommandsDecide(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Say("Work it out."), kit.Say("There.")
	kit.WorksOut(t, prompt, done, "7+7")
	thread := kit.NewThreadOf(kit.Shared)
	asks := kit.Shared.Asks(t, "run", "careful", prompt, "--thread", thread)
	if out := asks.Ends(t, 3); out != "" || !strings.Contains(asks.ErrOut.String(), "waits for a decision: May calculate be called? calculate") {
		t.Errorf("it says %q, %s", out, asks.ErrOut.String())
	}
	kit.Shared.Asks(t, "run", "careful", kit.Say("And now?"), "--thread", thread).Ends(t, 3)

	follows := kit.Shared.Asks(t, "tail", "--json", thread)
	follows.Until(t, "RUN_FINISHED")
	kit.Shared.Asks(t, "approve", "int_nothing").Ends(t, 6)
	kit.Shared.Asks(t, "approvals", "watch", "--json", "--thread", thread).FirstApproval(t, func(id string) {
		kit.Shared.Asks(t, "approve", id, "--thread", thread, "--args", `{"expression":"9+9"}`).Ends(t, 0)
		kit.Shared.Asks(t, "reject", id, "--thread", thread).Ends(t, 7)
	})
	follows.Until(t, "RUN_FINISHED")
	follows.Leave(t)

	other := kit.NewThreadOf(kit.Shared)
	waits := kit.Shared.Asks(t, "run", "careful", prompt, "--wait", "--thread", other)
	kit.Shared.Asks(t, "approvals", "watch", "--json", "--thread", other).FirstApproval(t, func(id string) {
		kit.Shared.Asks(t, "reject", id, "--thread", other, "--reason", kit.Say("too dear")).Ends(t, 0)
	})
	if out := waits.Ends(t, 0); out != done+"\n" {
		t.Errorf("the answer is %q, want %q", out, done)
	}
	shown := kit.Shared.Asks(t, "tail", "--no-follow", thread).Ends(t, 0)
	for _, want := range []string{"> " + prompt, `→ calculate {"expression":"9+9"}`, "← 18", done} {
		if !strings.Contains(shown, want+"\n") {
			t.Errorf("the thread's history lacks %q:\n%s", want, shown)
		}
	}
}

// The server is killed in mid-stream and comes back: a command goes on where it was, and what it
// writes to a pipe holds nothing of what the dead attempt said.
func TestCommandsOutliveTheServer(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Addr = "127.0.0.1:" + strconv.Itoa(kit.FreePorts(t, 1)[0])
	p.Keep(t)
	p.Start(t)
	prompt, answer := kit.Say("Slowly, please."), kit.Long(300)
	kit.SharedModel.Attempts(t, prompt, kit.Pours(strings.Repeat(kit.Dead, kit.Lifetime)), kit.Pours(strings.Repeat(kit.Dead, kit.Lifetime)), kit.Answers(answer), kit.Answers(answer))
	thread := kit.NewThreadOf(p)
	tail := p.Asks(t, "tail", thread, "--json")
	text := p.Asks(t, "run", "assistant", prompt, "--thread", thread)
	events := p.Asks(t, "run", "assistant", prompt, "--json", "--thread", kit.NewThreadOf(p))
	tail.Until(t, "TEXT_MESSAGE_CONTENT")
	tail.Leave(t)
	events.Until(t, "TEXT_MESSAGE_CONTENT")
	p.Kill()
	p.Start(t)
	rest := events.Ends(t, 0)
	if out := text.Ends(t, 0); out != answer+"\n" {
		t.Errorf("the answer is %.200q, want %.200q", out, answer)
	}
	var types []string
	last := ""
	for line := range strings.Lines(rest) {
		e := kit.EventIn(t, []byte(line))
		if types = append(types, e.Type); e.ID <= last {
			t.Errorf("the cursor %q follows %q", e.ID, last)
		}
		last = e.ID
	}
	if all := strings.Join(types, " "); !strings.Contains(all, "MESSAGES_SNAPSHOT TEXT_MESSAGE_START") || !strings.HasSuffix(all, "RUN_FINISHED") {
		t.Errorf("after the kill came %s", all)
	}
}

func TestCommandsExit(t *testing.T) {
	t.Parallel()
	slow, failing := kit.Say("Slowly, please."), kit.Say("Fail.")
	kit.SharedModel.Attempts(t, slow, kit.Pours(kit.Long(4000)))
	kit.SharedModel.Attempts(t, failing, kit.Fails(400))
	kit.Shared.Asks(t, "run", "nobody", "hi").Ends(t, 6)
	kit.Shared.Asks(t, "run", "demo").Ends(t, 2)
	kit.Shared.Asks(t, "run", "demo", "hi", "--url", "http://127.0.0.1:1").Ends(t, 5)
	kit.Shared.Asks(t, "steer", kit.NewThread(), "hi").Ends(t, 7)
	kit.Shared.Asks(t, "run", "assistant", failing, "--thread", kit.NewThreadOf(kit.Shared)).Ends(t, 1)

	thread := kit.NewThreadOf(kit.Shared)
	left := kit.Shared.Asks(t, "run", "assistant", slow, "--run", "run-1", "--json", "--thread", thread)
	left.Until(t, "TEXT_MESSAGE_CONTENT")
	left.Leave(t)
	again := kit.Shared.Asks(t, "run", "assistant", slow, "--run", "run-1", "--cancel-on-interrupt", "--json", "--thread", thread)
	again.Until(t, "TEXT_MESSAGE_CONTENT")
	again.Interrupt(t)
	again.Ends(t, 4)
}
