package schedules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// scheduled is a schedule as the api shows it.
type scheduled struct {
	ID            string      `json:"id"`
	Paused        bool        `json:"paused"`
	PausedBecause string      `json:"pausedBecause"`
	Next          []time.Time `json:"next"`
	Fired         int         `json:"fired"`
	Skipped       int         `json:"skipped"`
	Recent        []recent    `json:"recent"`
}

// recent is a time at which it fired.
type recent struct {
	ScheduledAt time.Time `json:"scheduledAt"`
	ThreadID    string    `json:"threadId"`
	RunID       string    `json:"runId"`
	Outcome     string    `json:"outcome"`
	Active      bool      `json:"active"`
}

// timetable is a schedule on a server.
type timetable struct {
	p      *kit.Endpoint
	id     string
	prompt string
}

// ask sends a request about schedules.
func (s *timetable) ask(t *testing.T, method, path string, body any, status int, answer any) {
	t.Helper()
	raw := []byte{}
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.p.Url("/v1/schedules"+path), bytes.NewReader(raw))
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

// newTimetable makes a schedule of the assistant's, with some members of its own. The model knows
// its answer before there is a schedule: the first time may come at once.
func newTimetable(t *testing.T, p *kit.Endpoint, id string, answer kit.Fixture, members map[string]any) *timetable {
	t.Helper()
	s := &timetable{p: p, id: id, prompt: kit.Say("What is new?")}
	answer.Match = kit.Match{UserMessage: s.prompt}
	kit.SharedModel.Answer(t, answer)
	body := map[string]any{
		"id": id, "agent": "assistant", "note": kit.Say("a note"),
		"input": map[string]any{"messages": []any{map[string]any{"role": "user", "content": s.prompt}}},
	}
	for name, value := range members {
		body[name] = value
	}
	s.ask(t, http.MethodPost, "", body, http.StatusCreated, nil)
	s.ask(t, http.MethodPost, "", body, http.StatusOK, nil)
	return s
}

func everySecond() map[string]any {
	return map[string]any{"intervals": []any{map[string]any{"every": "1s"}}}
}

// look shows the schedule; known is false if Temporal cannot tell just now, behind a crash.
func (s *timetable) look(t *testing.T) (now scheduled, known bool) {
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
		t.Fatalf("%s: %s (%v)", s.id, resp.Status, err)
	}
	return now, true
}

// until shows the schedule until it fits.
func (s *timetable) until(t *testing.T, what string, fits func(scheduled) bool) scheduled {
	t.Helper()
	late := time.NewTimer(kit.Patience)
	defer late.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		now, known := s.look(t)
		if known && fits(now) {
			return now
		}
		select {
		case <-look.C:
		case <-late.C:
			t.Fatalf("%s: %s is never so: %+v", s.id, what, now)
		}
	}
}

func (s *timetable) tell(t *testing.T, what string) {
	t.Helper()
	s.ask(t, http.MethodPost, "/"+s.id+"/"+what, nil, http.StatusNoContent, nil)
}

// rest pauses it, and waits until nothing goes on for it.
func (s *timetable) rest(t *testing.T) scheduled {
	t.Helper()
	s.tell(t, "pause")
	return s.until(t, "it is paused and nothing goes on", func(now scheduled) bool {
		return now.Paused && !slices.ContainsFunc(now.Recent, func(r recent) bool { return r.Active })
	})
}

// over lets nothing come any more.
func (s *timetable) over(t *testing.T) {
	t.Helper()
	s.ask(t, http.MethodDelete, "/"+s.id, nil, http.StatusNoContent, nil)
	s.ask(t, http.MethodGet, "/"+s.id, nil, http.StatusNotFound, nil)
}

// ended reports whether n of its latest runs have ended well, and nothing goes on for them.
func ended(n int) func(scheduled) bool {
	return func(now scheduled) bool {
		over := 0
		for _, r := range now.Recent {
			if r.Outcome == "success" && !r.Active {
				over++
			}
		}
		return over >= n
	}
}

// A schedule opens threads, each once, over the death of the process.
func TestTimetableSurvives(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	answer := kit.Say("Nothing.")
	s := newTimetable(t, p.Endpoint, "every-second", kit.Fixture{Response: kit.Response{Content: answer}}, everySecond())
	s.until(t, "two runs have ended", ended(2))
	p.Kill()
	died := time.Now()
	p.Start(t)
	s.until(t, "a run has ended behind the restart", func(now scheduled) bool {
		return len(now.Recent) > 0 && now.Recent[0].ScheduledAt.After(died) && now.Recent[0].Outcome == "success"
	})
	paused := s.rest(t)
	for _, r := range paused.Recent {
		if r.Outcome != "success" || r.ThreadID != r.RunID || r.ThreadID != "every-second-"+r.ScheduledAt.UTC().Format("20060102T150405Z") {
			t.Errorf("at %s: %+v", r.ScheduledAt, r)
		}
		events := p.Reader(t, kit.Input{ThreadID: r.ThreadID, RunID: r.RunID})
		events.View = kit.EventsPath(events.In)
		events.Finish(t)
		messages := kit.Show(t, nil, events.Events)
		if len(messages) == 0 || messages[len(messages)-1].Content != answer {
			t.Errorf("%s has %+v", r.ThreadID, messages)
		}
	}
	s.until(t, "the second of the last time is over", func(now scheduled) bool { // two times of one second are one
		return time.Since(now.Recent[0].ScheduledAt) > time.Second
	})
	s.tell(t, "trigger")
	triggered := s.until(t, "it was triggered", func(now scheduled) bool { return now.Fired == paused.Fired+1 && ended(1)(now) })
	if !triggered.Paused {
		t.Error("a trigger ends the pause")
	}
	s.tell(t, "resume")
	s.until(t, "it goes on", func(now scheduled) bool { return now.Fired > triggered.Fired && !now.Paused })
	s.rest(t) // a time that comes while it is deleted has no run
	s.over(t)
	p.FiresOnce(t)
}

// cancelRest pauses it, cancels the run that goes on, and waits until all of its runs were
// cancelled.
func (s *timetable) cancelRest(t *testing.T) {
	t.Helper()
	s.tell(t, "pause")
	s.until(t, "it is paused and all of its runs were cancelled", func(now scheduled) bool {
		for _, r := range now.Recent {
			if !r.Active {
				continue
			}
			// It may not have begun: then it is unknown yet.
			if status := s.p.Cancel(t, kit.Input{ThreadID: r.ThreadID, RunID: r.RunID}); status != http.StatusAccepted && status != http.StatusNotFound {
				t.Errorf("cancel: %d", status)
			}
		}
		return now.Paused && !slices.ContainsFunc(now.Recent, func(r recent) bool { return r.Active || r.Outcome != "cancelled" })
	})
}

// What Temporal does about overlaps is about runs.
func TestTimetableOverlaps(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	slowly := kit.Fixture{Response: kit.Response{Content: kit.Long(200_000)}, ChunkSize: 8, Latency: 25}
	cancelled := func(atLeast int) func(scheduled) bool {
		return func(now scheduled) bool {
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
		s := newTimetable(t, p.Endpoint, overlap, slowly, members)
		if overlap == "skip" {
			now := s.until(t, "times are skipped", func(now scheduled) bool { return now.Skipped >= 2 })
			if len(now.Recent) != 1 || !now.Recent[0].Active || now.Fired != 1 {
				t.Errorf("beside a run: %+v", now)
			}
			s.ask(t, http.MethodPost, "/skip/trigger", map[string]any{"overlap": "terminate_other"}, http.StatusNoContent, nil)
			s.until(t, "its run has made way for a trigger", func(now scheduled) bool { return now.Fired == 2 && cancelled(1)(now) })
		} else {
			s.until(t, "two runs have made way", cancelled(2))
		}
		s.cancelRest(t)
		s.over(t)
	}
}

// Runs of a thread of their own come one behind the other, with what was said before.
func TestTimetableOfAThread(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	members := everySecond()
	members["threadId"] = kit.NewThread()
	s := newTimetable(t, p.Endpoint, "diary", kit.Fixture{Response: kit.Response{Content: kit.Say("Nothing.")}}, members)
	s.until(t, "three runs have ended", ended(3))
	s.over(t)
	calls := kit.SharedModel.Calls(t, s.prompt)
	for i, c := range calls[:3] {
		asked := 0
		for _, m := range c.Body.Messages {
			if m.Role == "user" && m.Text() == s.prompt {
				asked++
			}
		}
		if asked != i+1 {
			t.Errorf("in run %d the model is asked %d times: %s", i, asked, fmt.Sprint(c.Body.Messages))
		}
	}
}

// A schedule whose run fails pauses, if it is to.
func TestTimetablePausesOnFailure(t *testing.T) {
	t.Parallel()
	p := kit.Setup(t)
	members := everySecond()
	members["pauseOnFailure"] = true
	s := newTimetable(t, p.Endpoint, "fails", kit.Fixture{Response: kit.Response{Error: &kit.ModelError{Message: kit.Say("no"), Type: "invalid_request_error"}, Status: 400}}, members)
	now := s.until(t, "it is paused", func(now scheduled) bool { return now.Paused })
	if len(now.Recent) == 0 || now.Recent[0].Outcome != "error" || now.PausedBecause == "" || now.Fired != 1 {
		t.Errorf("%+v", now)
	}
	s.over(t)
}
