package remote

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

// graphRun is a run of a graph that is killed in mid-stream, and the next run of its thread.
type graphRun struct {
	agent  string
	g      kit.Generation
	in     kit.Input
	next   kit.Message
	client *kit.ClientProcess
	want   []kit.Message // after the first run, if it is made again
}

// farAway is a place whose weather takes seconds to write.
var farAway = strings.TrimSpace(strings.Repeat("far ", 60)) + " away"

// startGraphRuns starts a run that writes a text, and one that does so after a call, for both retry rules and
// generations. It reads all into mid-stream.
func startGraphRuns(t *testing.T, p *kit.Perdure) (runs []*graphRun) {
	t.Helper()
	call := kit.ToolCallMessage(kit.ModelCall{Name: "weather", Arguments: `{"city":"` + farAway + `"}`})
	call.Content = "Let me look. "
	for prompt, want := range map[string][]kit.Message{
		"slowly count to 100":          {kit.AssistantMessage(counted(100))},
		"slowly weather in " + farAway: {call, kit.ToolMessage("sunny in " + farAway), kit.AssistantMessage("So: sunny in " + farAway)},
	} {
		for _, agent := range []string{chat, restarts} {
			for _, g := range kit.Generations {
				r := &graphRun{agent: agent, g: g, in: kit.NewInput(kit.Marked(prompt)), next: kit.UserMessage(kit.Marked("echo Go on"))}
				r.want = append(slices.Clone(r.in.Messages), want...)
				r.client = g.Drive(t, p, kit.Script{
					URL: runsOf(p, agent), ThreadID: r.in.ThreadID, Reconnect: &kit.ReconnectRule{Addresses: p.AddressFile()},
					Runs: []kit.ScriptedRun{{RunID: r.in.RunID, Messages: r.in.Messages}, {RunID: "run-2", Add: []kit.Message{r.next}}},
				})
				runs = append(runs, r)
			}
		}
	}
	for _, r := range runs {
		r.client.Until(t, "TEXT_MESSAGE_CONTENT", 8) // the text before the call has three
	}
	return runs
}

// finish reads a run and the next one to their end, and checks what clients and the log have. Without retries
// the run fails, and nothing of it is left, also not after the next run, whose snapshot has the messages that the
// graph has stored. With restarts the run is complete.
func (r *graphRun) finish(t *testing.T, p *kit.Perdure) {
	t.Helper()
	ends := r.client.Finish(t)
	want := r.want
	if r.agent == chat {
		want = r.in.Messages
		failed := r.client.Events(0, "RUN_ERROR")
		if len(failed) != 1 || (kit.Event{Data: failed[0]}).Member("code") != "remote_connection_broken" {
			t.Errorf("end of the run = %s, want RUN_ERROR with the code remote_connection_broken", failed)
		}
	}
	if diff := cmp.Diff(want, ends[0].Messages, kit.IgnoreIDs, withoutEmptyCalls); diff != "" {
		t.Errorf("messages after the killed run (-want +got):\n%s", diff)
	}
	want = append(slices.Clone(want), r.next, kit.AssistantMessage("You said: Go on"))
	if diff := cmp.Diff(want, ends[1].Messages, kit.IgnoreIDs, withoutEmptyCalls); diff != "" {
		t.Errorf("messages after the next run (-want +got):\n%s", diff)
	}
	wantConversation(t, p, r.g, r.in.ThreadID, "run-2", ends[1].Messages)
}

// TestLangGraphPerdureKilled: perdure is killed while graphs stream. LangGraph keeps its threads: a run that is
// made again leaves no message twice in them.
func TestLangGraphPerdureKilled(t *testing.T) {
	t.Parallel()
	s := startLangGraph(t)
	p := s.setup(t)
	runs := startGraphRuns(t, p)
	p.Restart(t)
	for _, r := range runs {
		r.finish(t, p)
		if r.agent == restarts {
			s.wantCheckpoint(t, p, r.agent, r.in.ThreadID)
		}
	}
}

// TestLangGraphKilled: the server is killed while its graphs stream, with their threads, and started again.
func TestLangGraphKilled(t *testing.T) {
	t.Parallel()
	s := startLangGraph(t)
	p := s.setup(t)
	runs := startGraphRuns(t, p)
	s.Kill()
	s.Start(t)
	for _, r := range runs {
		r.finish(t, p)
		s.wantCheckpoint(t, p, r.agent, r.in.ThreadID)
	}
}
