package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// verdict holds a run that has ended against what was promised, whatever befell it:
//
//   - its reader saw one legal run, no event twice, and ends with the messages that the journal says;
//   - whoever reads it later, or joins it, ends with the same;
//   - what the log had as done was not done again.
//
// The endpoint is where it is read once more.
func (a *actor) verdict(ctx context.Context, at *endpoint) error {
	shown, err := a.shown()
	if err != nil {
		return fmt.Errorf("the reader: %w", err)
	}
	records, err := at.records(ctx, a.reader.in)
	if err != nil {
		return err
	}
	return errors.Join(a.ending(), a.content(shown), a.once(records), a.nothingBehind(ctx, at), a.readAgain(ctx, at, shown), a.join(ctx, at, shown))
}

// shown returns what the reader has at the end. A call that is withdrawn goes before it ends, which
// clients remark on; reasoning that is withdrawn is left behind empty.
func (a *actor) shown() ([]message, error) {
	events := a.reader.events
	if err := oneRun(events); err != nil {
		return nil, err
	}
	shown, err := reduce(a.reader.in.Messages, events, withdrawn)
	return withoutEmptied(shown), err
}

// oneRun checks that there is one beginning and one end, in their places.
func oneRun(events []event) error {
	started, ended := 0, 0
	for _, e := range events {
		if e.Type == "RUN_STARTED" {
			started++
		}
		if e.terminal() {
			ended++
		}
	}
	if started != 1 || ended != 1 || events[0].Type != "RUN_STARTED" || !events[len(events)-1].terminal() {
		return fmt.Errorf("%d beginnings and %d ends: %q", started, ended, lines(events))
	}
	return nil
}

// ending checks how the run ended.
func (a *actor) ending() error {
	last := a.reader.events[len(a.reader.events)-1]
	got := outcome(last)
	if last.Type == "RUN_ERROR" {
		got = last.member("code")
	}
	want := []string{"success"}
	switch {
	case a.unsaid != "":
		want = []string{a.unsaid}
	case a.cancel && a.phase.name == phaseDone: // whichever the run hears of first
		want = []string{"success", "cancelled"}
	case a.cancel && a.phase.name != phaseEnded:
		want = []string{"cancelled"}
	}
	if !slices.Contains(want, got) {
		return fmt.Errorf("it ended with %s, want %s", last.Data, want)
	}
	return nil
}

// content compares what is shown with what the surviving attempts said. Of a run that did not come
// to its own end, all that is shown must have been said.
func (a *actor) content(shown []message) error {
	if last := a.reader.events[len(a.reader.events)-1]; outcome(last) != "success" {
		return a.partial(shown)
	}
	want, err := a.survivors(shown)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, byCall(slices.Clone(shown)), ignoreIDs); diff != "" {
		return fmt.Errorf("messages (-said +shown):\n%s", diff)
	}
	return nil
}

// survivors returns the messages that the journal tells: of each turn what the last attempt said
// that came to its end.
func (a *actor) survivors(shown []message) ([]message, error) {
	want := slices.Clone(a.reader.in.Messages)
	for turn := 1; turn <= 2; turn++ {
		all := a.play.performances(turn)
		all = slices.DeleteFunc(all, func(pf performance) bool { return !pf.finished })
		if len(all) == 0 {
			return nil, fmt.Errorf("the run ended well, but no model call of turn %d", turn)
		}
		said := all[len(all)-1]
		if said.thought != "" {
			want = append(want, message{Role: "reasoning", Content: said.thought})
		}
		answer := callsTools(said.calls...)
		answer.Content = said.text
		want = append(want, answer)
		for i, c := range said.calls {
			told, err := a.effect(c, i, shown)
			if err != nil {
				return nil, err
			}
			want = append(want, result(told))
		}
	}
	return want, nil
}

// What a model is told of a call whose worker died, and of one with arguments that make no sense.
const (
	unknownOutcome = "Whether it took effect is unknown"
	invalidCall    = "invalid arguments: "
)

// effect returns the result of a call: what the tool said the last time it ran, or why it has none.
// Those words are the product's, and taken from where they are shown.
func (a *actor) effect(c modelCall, nth int, shown []message) (string, error) {
	var args struct {
		Note string `json:"note"`
	}
	told := ""
	if at := slices.IndexFunc(shown, func(m message) bool { return m.Role == "tool" }); at >= 0 && at+nth < len(shown) {
		told = byCall(slices.Clone(shown))[at+nth].Content
	}
	if json.Unmarshal([]byte(c.Arguments), &args) != nil {
		if !strings.HasPrefix(told, invalidCall) {
			return "", fmt.Errorf("the result of a call with half its arguments is %q", told)
		}
		return told, nil
	}
	made := slices.DeleteFunc(a.play.performances(turnTool), func(pf performance) bool { return pf.note != args.Note })
	for _, pf := range made {
		if pf.key != made[0].key || pf.key == "" {
			return "", fmt.Errorf("two attempts of a call have the idempotency keys %q and %q", made[0].key, pf.key)
		}
	}
	if a.play.tool == "charge" {
		switch {
		case len(made) > 1:
			return "", fmt.Errorf("a tool that is not idempotent ran %d times", len(made))
		case a.killed && strings.Contains(told, unknownOutcome):
			return told, nil
		}
	}
	if len(made) == 0 {
		return "", fmt.Errorf("the tool did not run, and its result is %q", told)
	}
	return made[len(made)-1].answer, nil
}

// partial checks that everything that is shown was said.
func (a *actor) partial(shown []message) error {
	var said []performance
	for turn := 1; turn <= 2; turn++ {
		said = append(said, a.play.performances(turn)...)
	}
	begins := func(text string, of func(performance) string) bool {
		return text == "" || slices.ContainsFunc(said, func(pf performance) bool { return strings.HasPrefix(of(pf), text) })
	}
	for _, m := range shown {
		ok := true
		switch m.Role {
		case "reasoning":
			ok = begins(m.Content, func(pf performance) string { return pf.thought })
		case "assistant":
			ok = begins(m.Content, func(pf performance) string { return pf.text })
			for i, c := range m.ToolCalls {
				ok = ok && begins(c.Function.Arguments, func(pf performance) string {
					if i < len(pf.calls) {
						return pf.calls[i].Arguments
					}
					return ""
				})
			}
		}
		if !ok {
			return fmt.Errorf("nobody said %+v", m)
		}
	}
	return nil
}

// once checks that a step is done once, and that neither model nor tool was called for it
// afterwards. Log and journal are on one clock.
func (a *actor) once(records []record) error {
	done := map[string]bool{}
	for _, r := range records {
		if r.kind != "done" {
			continue
		}
		if done[r.step] {
			return fmt.Errorf("step %s is done twice", r.step)
		}
		done[r.step] = true
		turn := map[string]int{"1/model": 1, "2/model": 2, "1/tools/0": turnTool}
		of, ok := turn[r.step]
		if !ok {
			continue
		}
		for _, pf := range a.play.performances(of) {
			if strings.HasPrefix(pf.note, "1 ") { // of the second call of a turn
				continue
			}
			if pf.began.After(r.at) {
				return fmt.Errorf("step %s was done at %s, and was called again at %s", r.step, r.at, pf.began)
			}
		}
	}
	return nil
}

// nothingBehind checks that who has all of it is told to stop.
func (a *actor) nothingBehind(ctx context.Context, at *endpoint) error {
	resp, err := at.get(ctx, eventsPath(a.reader.in), a.reader.last())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("behind the end: %s, want 204", resp.Status)
	}
	return nil
}

// readAgain has the run read from its start.
func (a *actor) readAgain(ctx context.Context, at *endpoint, shown []message) error {
	f := at.quiet(ctx, a.reader.in)
	f.agent = a.reader.agent
	if err := f.read(); err != nil {
		return fmt.Errorf("a late reader: %w", err)
	}
	if err := oneRun(f.events); err != nil {
		return fmt.Errorf("a late reader: %w", err)
	}
	late, err := reduce(f.in.Messages, f.events)
	if err != nil {
		return fmt.Errorf("a late reader: %w", err)
	}
	return sameMessages("a late reader", shown, late)
}

// join has the run joined by somebody who has nothing.
func (a *actor) join(ctx context.Context, at *endpoint, shown []message) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.url(eventsPath(a.reader.in)+"?join=true&limit=500"), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("join: %s %.300s %w", resp.Status, body, err)
	}
	var page struct {
		Items []struct {
			Event json.RawMessage `json:"event"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	var events []event
	for _, i := range page.Items {
		e := event{Data: i.Event}
		e.Type = e.member("type")
		events = append(events, e)
	}
	if err := oneRun(events); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	joined, err := reduce(nil, events)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	return sameMessages("join", shown, joined)
}

func sameMessages(who string, want, got []message) error {
	if diff := cmp.Diff(withoutEmptied(want), withoutEmptied(got)); diff != "" {
		return fmt.Errorf("%s (-the reader +%s):\n%s", who, who, diff)
	}
	return nil
}
