package clients

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestCommandsSendDecisions: the command run asks for approvals. A run that waits for another
// approver continues when the decision arrives from another process.
func TestCommandsSendDecisions(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "7+7")
	thread := kit.NewThreadOf(kit.Shared)
	asks := kit.Shared.StartCommand(t, "run", "careful", prompt, "--thread", thread)
	if out := asks.Finish(t, 3); out != "" || !strings.Contains(asks.ErrOut.String(), "waits for a decision: May calculate be called? calculate") {
		t.Errorf("output = %q, %s, want the interrupt on standard error", out, asks.ErrOut.String())
	}
	kit.Shared.StartCommand(t, "run", "careful", kit.Marked("And now?"), "--thread", thread).Finish(t, 3)

	follows := kit.Shared.StartCommand(t, "tail", "--json", thread)
	follows.Until(t, "RUN_FINISHED")
	kit.Shared.StartCommand(t, "approve", "int_nothing").Finish(t, 6)
	kit.Shared.StartCommand(t, "approvals", "watch", "--json", "--thread", thread).UntilApproval(t, func(id string) {
		kit.Shared.StartCommand(t, "approve", id, "--thread", thread, "--args", `{"expression":"9+9"}`).Finish(t, 0)
		kit.Shared.StartCommand(t, "reject", id, "--thread", thread).Finish(t, 7)
	})
	follows.Until(t, "RUN_FINISHED")
	follows.Quit(t)

	other := kit.NewThreadOf(kit.Shared)
	waits := kit.Shared.StartCommand(t, "run", "careful", prompt, "--wait", "--thread", other)
	kit.Shared.StartCommand(t, "approvals", "watch", "--json", "--thread", other).UntilApproval(t, func(id string) {
		kit.Shared.StartCommand(t, "reject", id, "--thread", other, "--reason", kit.Marked("too dear")).Finish(t, 0)
	})
	if out := waits.Finish(t, 0); out != done+"\n" {
		t.Errorf("the answer is %q, want %q", out, done)
	}
	shown := kit.Shared.StartCommand(t, "tail", "--no-follow", thread).Finish(t, 0)
	for _, want := range []string{"> " + prompt, `→ calculate {"expression":"9+9"}`, "← 18", done} {
		if !strings.Contains(shown, want+"\n") {
			t.Errorf("history of the thread: want %q, got\n%s", want, shown)
		}
	}
}

// TestCommandsSurviveServer: the server is killed in mid-stream and restarted. The command
// continues, and its output to a pipe has nothing of the killed attempt.
func TestCommandsSurviveServer(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Addr = "127.0.0.1:" + strconv.Itoa(kit.FreePorts(t, 1)[0])
	p.InspectAtEnd(t)
	p.Start(t)
	prompt, answer := kit.Marked("Slowly, please."), kit.LongText(300)
	kit.SharedModel.AnswerInOrder(t, prompt, kit.SlowAnswer(strings.Repeat(kit.CrashedText, kit.CrashedRepeats)), kit.SlowAnswer(strings.Repeat(kit.CrashedText, kit.CrashedRepeats)), kit.FastAnswer(answer), kit.FastAnswer(answer))
	thread := kit.NewThreadOf(p)
	tail := p.StartCommand(t, "tail", thread, "--json")
	text := p.StartCommand(t, "run", "assistant", prompt, "--thread", thread)
	events := p.StartCommand(t, "run", "assistant", prompt, "--json", "--thread", kit.NewThreadOf(p))
	tail.Until(t, "TEXT_MESSAGE_CONTENT")
	tail.Quit(t)
	events.Until(t, "TEXT_MESSAGE_CONTENT")
	p.Kill()
	p.Start(t)
	rest := events.Finish(t, 0)
	if out := text.Finish(t, 0); out != answer+"\n" {
		t.Errorf("the answer is %.200q, want %.200q", out, answer)
	}
	var types []string
	last := ""
	for line := range strings.Lines(rest) {
		e := kit.ParseEventLine(t, []byte(line))
		if types = append(types, e.Type); e.ID <= last {
			t.Errorf("cursor = %q after %q, want a later one", e.ID, last)
		}
		last = e.ID
	}
	if all := strings.Join(types, " "); !strings.Contains(all, "MESSAGES_SNAPSHOT TEXT_MESSAGE_START") || !strings.HasSuffix(all, "RUN_FINISHED") {
		t.Errorf("events after the kill = %s, want a prelude and the end", all)
	}
}

func TestExitCodesOfCommands(t *testing.T) {
	t.Parallel()
	slow, failing := kit.Marked("Slowly, please."), kit.Marked("Fail.")
	kit.SharedModel.AnswerInOrder(t, slow, kit.SlowAnswer(kit.LongText(4000)))
	kit.SharedModel.AnswerInOrder(t, failing, kit.ErrorAnswer(400))
	kit.Shared.StartCommand(t, "run", "nobody", "hi").Finish(t, 6)
	kit.Shared.StartCommand(t, "run", "demo").Finish(t, 2)
	kit.Shared.StartCommand(t, "run", "demo", "hi", "--url", "http://127.0.0.1:1").Finish(t, 5)
	kit.Shared.StartCommand(t, "steer", kit.NewThread(), "hi").Finish(t, 6)
	kit.Shared.StartCommand(t, "run", "assistant", failing, "--thread", kit.NewThreadOf(kit.Shared)).Finish(t, 1)

	thread := kit.NewThreadOf(kit.Shared)
	left := kit.Shared.StartCommand(t, "run", "assistant", slow, "--run", "run-1", "--json", "--thread", thread)
	left.Until(t, "TEXT_MESSAGE_CONTENT")
	left.Quit(t)
	again := kit.Shared.StartCommand(t, "run", "assistant", slow, "--run", "run-1", "--cancel-on-interrupt", "--json", "--thread", thread)
	again.Until(t, "TEXT_MESSAGE_CONTENT")
	again.Interrupt(t)
	again.Finish(t, 4)
}
