package remote

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// goneStory is the story of an attempt that is killed. It lasts for 15 seconds: longer than it takes to
// start its readers, and short because CopilotKit's runtime goes on with it after the kill.
var goneStory = strings.Repeat(kit.CrashedText, 300)

// npmStory is a run that tells a long story. Its next run is a short one.
type npmStory struct {
	retry  string
	g      kit.Generation
	in     kit.Input
	next   kit.Message
	client *kit.ClientProcess
	want   string // the story of the second attempt
}

// startStories starts a story for each retry rule and generation, and reads all into mid-stream.
func (s npmServer) startStories(t *testing.T, p *kit.Perdure) (stories []npmStory) {
	t.Helper()
	for _, retry := range []string{"never", "restart"} {
		for _, g := range kit.Generations {
			st := npmStory{retry: retry, g: g, in: kit.NewInput(kit.Marked(tellStory)), next: kit.UserMessage(kit.Marked(sayHello)), want: kit.LongText(300)}
			kit.SharedModel.AnswerInOrder(t, st.in.Messages[0].Content, kit.SlowAnswer(goneStory), kit.SlowAnswer(st.want))
			if s.name == "mock" {
				st.want = mockStory()
			}
			runs := []kit.ScriptedRun{{RunID: st.in.RunID, Messages: st.in.Messages}}
			if retry == "restart" {
				runs = append(runs, kit.ScriptedRun{RunID: "run-2", Add: []kit.Message{st.next}})
			}
			st.client = g.Drive(t, p, kit.Script{
				URL: s.runs(p, retry), ThreadID: st.in.ThreadID, Runs: runs, Reconnect: &kit.ReconnectRule{Addresses: p.AddressFile()},
			})
			stories = append(stories, st)
		}
	}
	for _, st := range stories {
		st.client.Until(t, "TEXT_MESSAGE_CONTENT", 3)
	}
	return stories
}

// mockStory returns the story of mock_agent.mjs, which is the same in all runs.
func mockStory() string {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "%s %d. ", kit.Mark, i)
	}
	return b.String()
}

// finish reads the story to its end, and checks the client, the log, a fresh reader and the server.
func (s npmServer) finish(t *testing.T, p *kit.Perdure, st npmStory) {
	t.Helper()
	ends := st.client.Finish(t)
	if st.retry == "never" {
		failed := st.client.Events(0, "RUN_ERROR")
		if len(failed) != 1 || (kit.Event{Data: failed[0]}).Member("code") != "remote_connection_broken" {
			t.Errorf("end of the run = %s, want RUN_ERROR with the code remote_connection_broken", failed)
		}
		kit.WantMessages(t, st.in.Messages, ends[0].Messages)
		wantLogged(t, p, st.in.ThreadID, st.in.RunID, ends[0].Messages)
		return
	}
	told := append(st.in.Messages, kit.AssistantMessage(st.want))
	kit.WantMessages(t, told, ends[0].Messages)
	kit.WantMessages(t, append(told, st.next, kit.AssistantMessage(hello)), ends[1].Messages)
	wantLogged(t, p, st.in.ThreadID, "run-2", ends[1].Messages)
	s.wantOwnIDs(t, s.name+"-restart", st.next.Content, ends[0].Messages)
}

// TestNPMServersPerdureKilled: perdure is killed while agents on servers from npm stream. Without
// retries the run fails, and nothing of it is left; with restarts it is made again, and is complete.
func TestNPMServersPerdureKilled(t *testing.T) {
	t.Parallel()
	answerPrompts(t)
	eachNPMServer(t, npmServers, func(t *testing.T, p *kit.Perdure, s npmServer) {
		stories := s.startStories(t, p)
		p.Restart(t)
		for _, st := range stories {
			s.finish(t, p, st)
			// With restarts: both attempts and the next run. CopilotKit's runtime refuses further attempts as
			// long as the first one goes on.
			n := len(s.received(t, st.in.Messages[0].Content))
			if isRight := n == 1 && st.retry == "never" || n >= 3 && st.retry == "restart"; !isRight {
				t.Errorf("runs that the server received with retry %s = %d, want 1 with never, at least 3 with restart", st.retry, n)
			}
		}
	})
}

// TestNPMServersKilled: servers from npm are killed while they stream, and started again.
func TestNPMServersKilled(t *testing.T) {
	t.Parallel()
	answerPrompts(t)
	eachNPMServer(t, npmServers, func(t *testing.T, p *kit.Perdure, s npmServer) {
		stories := s.startStories(t, p)
		s.Kill()
		s.Start(t)
		for _, st := range stories {
			s.finish(t, p, st)
		}
	})
}
