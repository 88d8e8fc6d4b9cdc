package copilotkit

import (
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// setup starts CopilotKit's runtime in front of the shared Perdure.
func setup(t *testing.T) (kit.FrontEnd, *kit.RunnerProcess) {
	t.Helper()
	f := kit.NewFrontEnd(t)
	return f, f.StartRuntime(t, kit.Runtime{BaseURL: kit.Shared.URL("")})
}

// newThread returns the ID of a thread that the shared process inspects at its end.
func newThread() string {
	thread := kit.NewThread()
	kit.Shared.Threads.Add(thread)
	return thread
}

// TestRestartOfRuntime: the runtime is killed during a run. A page that connects to the next process
// sees the earlier messages, and the run as it goes on. Perdure has called the model once.
func TestRestartOfRuntime(t *testing.T) {
	t.Parallel()
	f, runtime := setup(t)
	thread := newThread()
	hello, question := kit.UserMessage(kit.Marked("Hello.")), kit.UserMessage(kit.Marked("Tell me a story."))
	greeting, story := kit.Marked("Hello to you."), kit.LongText(1600)
	kit.SharedModel.AnswerWith(t, hello.Content, greeting)
	kit.SharedModel.Answer(t, slow(question, story))

	page := runtime.Open(t, "assistant", thread, "")
	page.Do(t, map[string]any{"say": hello})
	page.Do(t, map[string]any{"say": question, "until": 40})
	page.TolerateErrors()
	runtime = f.KillAndRestart(t, runtime)

	reloaded := runtime.Open(t, "assistant", thread, "")
	partial := reloaded.Do(t, map[string]any{"connect": true, "until": 41})
	if n := len(partial.Messages); n != 4 || len(partial.Messages[3].Content) >= len(story) {
		t.Errorf("the page did not join the run, and shows %v", partial.Messages)
	}
	want := []kit.Message{hello, kit.AssistantMessage(greeting), question, kit.AssistantMessage(story)}
	kit.WantMessages(t, want, reloaded.Next(t).Messages)
	if calls := kit.SharedModel.Calls(t, question.Content); len(calls) != 1 {
		t.Errorf("Perdure has called the model %d times", len(calls))
	}
}

func slow(question kit.Message, answer string) kit.Fixture {
	fixture := kit.SlowAnswer(answer)
	fixture.Match.UserMessage = question.Content
	return fixture
}
