package schedules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// scheduleView is a schedule in the API's form.
type scheduleView struct {
	ID            string      `json:"id"`
	Paused        bool        `json:"paused"`
	PausedBecause string      `json:"pausedBecause"`
	Next          []time.Time `json:"next"`
	Fired         int         `json:"fired"`
	Skipped       int         `json:"skipped"`
	Recent        []firing    `json:"recent"`
}

// firing is one time at which a schedule fired.
type firing struct {
	ScheduledAt time.Time `json:"scheduledAt"`
	ThreadID    string    `json:"threadId"`
	RunID       string    `json:"runId"`
	Outcome     string    `json:"outcome"`
	Code        string    `json:"code"`
	Active      bool      `json:"active"`
}

// testSchedule is a schedule on a server.
type testSchedule struct {
	p      *kit.Endpoint
	id     string
	prompt string
}

// request sends a request about schedules and checks its status.
func (s *testSchedule) request(t *testing.T, method, path string, body any, status int, answer any) {
	t.Helper()
	raw := []byte{}
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.p.URL("/v1/schedules"+path), bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("%s %s: %s %s (%v), want %d", method, path, resp.Status, text, err, status)
	}
	if answer != nil {
		if err := json.Unmarshal(text, answer); err != nil {
			t.Fatal(err)
		}
	}
}

// newTestSchedule creates a schedule of the assistant with further members. It scripts the model
// first, since the schedule may fire at once.
func newTestSchedule(t *testing.T, p *kit.Endpoint, id string, answer kit.Fixture, members map[string]any) *testSchedule {
	t.Helper()
	s := &testSchedule{p: p, id: id, prompt: kit.Marked("What is new?")}
	answer.Match = kit.Match{UserMessage: s.prompt}
	kit.SharedModel.Answer(t, answer)
	body := map[string]any{
		"id": id, "agent": "assistant", "note": kit.Marked("a note"),
		"input": map[string]any{"messages": []any{map[string]any{"role": "user", "content": s.prompt}}},
	}
	for name, value := range members {
		body[name] = value
	}
	s.request(t, http.MethodPost, "", body, http.StatusCreated, nil)
	s.request(t, http.MethodPost, "", body, http.StatusOK, nil)
	return s
}

// everySecond returns a schedule that fires every second.
func everySecond() map[string]any {
	return map[string]any{"intervals": []any{map[string]any{"every": "1s"}}}
}

// get returns the schedule. known is false if Temporal is not available, as after a kill.
func (s *testSchedule) get(t *testing.T) (now scheduleView, known bool) {
	t.Helper()
	resp, err := s.p.Get(t.Context(), "/v1/schedules/"+s.id, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusServiceUnavailable {
		return now, false
	}
	if err := json.NewDecoder(resp.Body).Decode(&now); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("schedule %s: got %s (%v), want %d", s.id, resp.Status, err, http.StatusOK)
	}
	return now, true
}

// until waits until the schedule fits.
func (s *testSchedule) until(t *testing.T, what string, fits func(scheduleView) bool) scheduleView {
	t.Helper()
	late := time.NewTimer(kit.WaitTimeout)
	defer late.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		now, known := s.get(t)
		if known && fits(now) {
			return now
		}
		select {
		case <-look.C:
		case <-late.C:
			t.Fatalf("%s: %s is not reached: %+v", s.id, what, now)
		}
	}
}

// post sends a command to the schedule.
func (s *testSchedule) post(t *testing.T, what string) {
	t.Helper()
	s.request(t, http.MethodPost, "/"+s.id+"/"+what, nil, http.StatusNoContent, nil)
}

// pause pauses the schedule and waits until no run is active.
func (s *testSchedule) pause(t *testing.T) scheduleView {
	t.Helper()
	s.post(t, "pause")
	paused := s.until(t, "it is paused and nothing goes on", func(now scheduleView) bool {
		return now.Paused && !slices.ContainsFunc(now.Recent, func(r firing) bool { return r.Active })
	})
	if paused.PausedBecause != "" {
		t.Errorf("reason of a requested pause: got %q, want none", paused.PausedBecause)
	}
	return paused
}

// delete deletes the schedule.
func (s *testSchedule) delete(t *testing.T) {
	t.Helper()
	s.request(t, http.MethodDelete, "/"+s.id, nil, http.StatusNoContent, nil)
	s.request(t, http.MethodGet, "/"+s.id, nil, http.StatusNotFound, nil)
}

// endedWell returns a predicate: at least n of the recent runs have succeeded and ended.
func endedWell(n int) func(scheduleView) bool {
	return func(now scheduleView) bool {
		over := 0
		for _, r := range now.Recent {
			if r.Outcome == "success" && !r.Active {
				over++
			}
		}
		return over >= n
	}
}

// TestScheduleSurvivesKills: a schedule starts one run on a new thread for each of its times, also
// over a kill.
func TestScheduleSurvivesKills(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	answer := kit.Marked("Nothing.")
	s := newTestSchedule(t, p.Endpoint, "every-second", kit.Fixture{Response: kit.Response{Content: answer}}, everySecond())
	s.until(t, "two runs have ended", endedWell(2))
	p.Kill()
	died := time.Now()
	p.Start(t)
	s.until(t, "a run has ended after the restart", func(now scheduleView) bool {
		return len(now.Recent) > 0 && now.Recent[0].ScheduledAt.After(died) && now.Recent[0].Outcome == "success"
	})
	paused := s.pause(t)
	for _, r := range paused.Recent {
		if r.Outcome != "success" || r.ThreadID != r.RunID || r.ThreadID != "every-second-"+r.ScheduledAt.UTC().Format("20060102T150405Z") {
			t.Errorf("firing at %s = %+v, want success in a thread of its own", r.ScheduledAt, r)
		}
		events := p.NewFollower(t, kit.Input{ThreadID: r.ThreadID, RunID: r.RunID})
		events.AttachPath = kit.EventsPath(events.In)
		events.Finish(t)
		messages := kit.ShownMessages(t, nil, events.Events)
		if len(messages) == 0 || messages[len(messages)-1].Content != answer {
			t.Errorf("messages of %s = %+v, want %q last", r.ThreadID, messages, answer)
		}
	}
	s.until(t, "the second of the last time is over", func(now scheduleView) bool { // the ids of firings have a resolution of a second
		return time.Since(now.Recent[0].ScheduledAt) > time.Second
	})
	s.post(t, "trigger")
	triggered := s.until(t, "it was triggered", func(now scheduleView) bool { return now.Fired == paused.Fired+1 && endedWell(1)(now) })
	if !triggered.Paused {
		t.Error("schedule is not paused after a trigger, want the pause kept")
	}
	s.post(t, "resume")
	s.until(t, "it goes on", func(now scheduleView) bool { return now.Fired > triggered.Fired && !now.Paused })
	s.pause(t) // a firing during the deletion has no run
	s.delete(t)
	p.WantOneRunPerFiring(t)
}

// pauseAndCancel pauses the schedule, cancels its active run, and waits until all of its runs are
// cancelled.
func (s *testSchedule) pauseAndCancel(t *testing.T) {
	t.Helper()
	s.post(t, "pause")
	s.until(t, "it is paused and all of its runs were cancelled", func(now scheduleView) bool {
		for _, r := range now.Recent {
			if !r.Active {
				continue
			}
			// The run may not have begun and is unknown then.
			if status := s.p.Cancel(t, kit.Input{ThreadID: r.ThreadID, RunID: r.RunID}); status != http.StatusAccepted && status != http.StatusNotFound {
				t.Errorf("cancel: got %d, want %d or %d", status, http.StatusAccepted, http.StatusNotFound)
			}
		}
		return now.Paused && !slices.ContainsFunc(now.Recent, func(r firing) bool { return r.Active || r.Outcome != "cancelled" })
	})
}

// TestScheduleOverlaps: the overlap policies of a schedule apply to its runs.
func TestScheduleOverlaps(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	slowly := kit.Fixture{Response: kit.Response{Content: kit.LongText(200_000)}, ChunkSize: 8, Latency: 25}
	cancelled := func(atLeast int) func(scheduleView) bool {
		return func(now scheduleView) bool {
			gone := 0
			for _, r := range now.Recent {
				if r.Outcome == "cancelled" {
					gone++
				}
			}
			return gone >= atLeast
		}
	}
	for _, overlap := range []string{"skip", "cancel_other", "terminate_other"} {
		members := everySecond()
		members["overlap"] = overlap
		s := newTestSchedule(t, p.Endpoint, overlap, slowly, members)
		if overlap == "skip" {
			now := s.until(t, "times are skipped", func(now scheduleView) bool { return now.Skipped >= 2 })
			if len(now.Recent) != 1 || !now.Recent[0].Active || now.Fired != 1 {
				t.Errorf("schedule during a run = %+v, want one active run", now)
			}
			s.request(t, http.MethodPost, "/skip/trigger", map[string]any{"overlap": "terminate_other"}, http.StatusNoContent, nil)
			s.until(t, "its run has made way for a trigger", func(now scheduleView) bool { return now.Fired == 2 && cancelled(1)(now) })
		} else {
			s.until(t, "two runs have made way", cancelled(2))
		}
		s.pauseAndCancel(t)
		s.delete(t)
	}
}

// TestScheduleOfThread: runs of a schedule with a threadId run one after another, and the model
// gets the whole conversation.
func TestScheduleOfThread(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	members := everySecond()
	members["threadId"] = kit.NewThread()
	s := newTestSchedule(t, p.Endpoint, "diary", kit.Fixture{Response: kit.Response{Content: kit.Marked("Nothing.")}}, members)
	s.until(t, "three runs have ended", endedWell(3))
	s.delete(t)
	calls := kit.SharedModel.Calls(t, s.prompt)
	for i, c := range calls[:3] {
		asked := 0
		for _, m := range c.Body.Messages {
			if m.Role == "user" && m.Text() == s.prompt {
				asked++
			}
		}
		if asked != i+1 {
			t.Errorf("run %d: prompts sent to the model = %d, want one more than before: %s", i, asked, fmt.Sprint(c.Body.Messages))
		}
	}
}

// TestSchedulePausesOnFailure: a schedule with pauseOnFailure pauses after a failed run.
func TestSchedulePausesOnFailure(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	members := everySecond()
	members["pauseOnFailure"] = true
	s := newTestSchedule(t, p.Endpoint, "fails", kit.Fixture{Response: kit.Response{Error: &kit.ModelError{Message: kit.Marked("no"), Type: "invalid_request_error"}, Status: 400}}, members)
	now := s.until(t, "it is paused", func(now scheduleView) bool { return now.Paused })
	if len(now.Recent) == 0 || now.Recent[0].Outcome != "error" || now.PausedBecause == "" || now.Fired != 1 {
		t.Errorf("schedule after the failure = %+v, want it paused", now)
	}
	s.delete(t)
}

// TestScheduleRespectsQuotas: firings are refused while the tenant has reached a quota, and start runs
// again when a thread waits no more. The audit log has both.
func TestScheduleRespectsQuotas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	quotas := filepath.Join(dir, "quotas.yaml")
	if err := os.WriteFile(quotas, []byte("default: {waitingThreads: 1}"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := kit.NewPerdure(filepath.Join(dir, "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_QUOTAS_FILE=" + quotas}
	p.InspectAtEnd(t)
	p.Start(t)
	prompt := kit.Marked("Calculate, please.")
	kit.ScriptCalculations(t, prompt, kit.Marked("Done."), "7*6")
	waiting := p.FollowAgent(t, kit.CarefulPath, kit.NewInput(prompt))
	waiting.Finish(t)
	s := newTestSchedule(t, p.Endpoint, "bounded", kit.Fixture{Response: kit.Response{Content: kit.Marked("Nothing.")}}, everySecond())
	s.until(t, "a firing is refused", func(now scheduleView) bool {
		return slices.ContainsFunc(now.Recent, func(r firing) bool { return r.Outcome == "refused" && r.Code == "quota_exceeded" })
	})
	if calls := kit.SharedModel.Calls(t, s.prompt); len(calls) > 0 {
		t.Errorf("calls of the model = %d, want none", len(calls))
	}
	waiting.Approve(t)
	s.until(t, "a run has ended", endedWell(1))
	s.delete(t)
	for _, outcome := range []string{"denied", "accepted"} {
		list := p.StartCommand(t, "audit", "--action", "schedule.fire", "--outcome", outcome).Finish(t, 0)
		if !strings.Contains(list, "schedule.fire ") {
			t.Errorf("entries of firings that are %s:\n%s\nwant at least one", outcome, list)
		}
	}
}
