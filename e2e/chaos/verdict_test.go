package chaos

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

	"github.com/perdure/perdure/e2e/kit"
)

// verdict holds a run that has ended against what was promised, whatever befell it:
//
//   - its reader saw one legal run, no event twice, and ends with the messages that the journal says;
//   - whoever reads it later, or joins it, ends with the same;
//   - what the log had as done was not done again.
//
// The endpoint is where it is read once more.
func (a *observedRun) verdict(ctx context.Context, at *kit.Endpoint) error {
	shown, err := a.shown()
	if err != nil {
		return fmt.Errorf("the reader: %w", err)
	}
	records, err := at.Records(ctx, a.reader.In)
	if err != nil {
		return err
	}
	return errors.Join(a.ending(), a.content(shown), a.once(records), a.nothingBehind(ctx, at), a.readAgain(ctx, at, shown), a.join(ctx, at, shown))
}

// shown returns what the reader has at the end. A call that is withdrawn goes before it ends, which
// clients remark on; reasoning that is withdrawn is left behind empty.
func (a *observedRun) shown() ([]kit.Message, error) {
	events := a.reader.Events
	if err := oneRun(events); err != nil {
		return nil, err
	}
	shown, err := kit.Reduce(a.reader.In.Messages, events, kit.Withdrawn)
	return kit.WithoutEmptied(shown), err
}

// oneRun checks that there is one beginning and one end, in their places.
func oneRun(events []kit.Event) error {
	started, ended := 0, 0
	for _, e := range events {
		if e.Type == "RUN_STARTED" {
			started++
		}
		if e.Terminal() {
			ended++
		}
	}
	if started != 1 || ended != 1 || events[0].Type != "RUN_STARTED" || !events[len(events)-1].Terminal() {
		return fmt.Errorf("%d beginnings and %d ends: %q", started, ended, kit.Lines(events))
	}
	return nil
}

// ending checks how the run ended.
func (a *observedRun) ending() error {
	last := a.reader.Events[len(a.reader.Events)-1]
	got := kit.Outcome(last)
	if last.Type == "RUN_ERROR" {
		got = last.Member("code")
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
func (a *observedRun) content(shown []kit.Message) error {
	if last := a.reader.Events[len(a.reader.Events)-1]; kit.Outcome(last) != "success" {
		return a.partial(shown)
	}
	want, err := a.survivors(shown)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, kit.ByCall(slices.Clone(shown)), kit.IgnoreIDs); diff != "" {
		return fmt.Errorf("messages (-said +shown):\n%s", diff)
	}
	return nil
}

// survivors returns the messages that the journal tells: of each turn what the last attempt said
// that came to its end.
func (a *observedRun) survivors(shown []kit.Message) ([]kit.Message, error) {
	want := slices.Clone(a.reader.In.Messages)
	for turn := 1; turn <= 2; turn++ {
		all := a.play.Performances(turn)
		all = slices.DeleteFunc(all, func(pf kit.Invocation) bool { return !pf.Finished })
		if len(all) == 0 {
			return nil, fmt.Errorf("the run ended well, but no model call of turn %d", turn)
		}
		said := all[len(all)-1]
		if said.Thought != "" {
			want = append(want, kit.Message{Role: "reasoning", Content: said.Thought})
		}
		answer := kit.CallsTools(said.Calls...)
		answer.Content = said.Text
		want = append(want, answer)
		for i, c := range said.Calls {
			told, err := a.effect(c, i, shown)
			if err != nil {
				return nil, err
			}
			want = append(want, kit.Result(told))
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
func (a *observedRun) effect(c kit.ModelCall, nth int, shown []kit.Message) (string, error) {
	var args struct {
		Note string `json:"note"`
	}
	told := ""
	if at := slices.IndexFunc(shown, func(m kit.Message) bool { return m.Role == "tool" }); at >= 0 && at+nth < len(shown) {
		told = kit.ByCall(slices.Clone(shown))[at+nth].Content
	}
	if json.Unmarshal([]byte(c.Arguments), &args) != nil {
		if !strings.HasPrefix(told, invalidCall) {
			return "", fmt.Errorf("the result of a call with half its arguments is %q", told)
		}
		return told, nil
	}
	made := slices.DeleteFunc(a.play.Performances(kit.TurnTool), func(pf kit.Invocation) bool { return pf.Note != args.Note })
	for _, pf := range made {
		if pf.Key != made[0].Key || pf.Key == "" {
			return "", fmt.Errorf("two attempts of a call have the idempotency keys %q and %q", made[0].Key, pf.Key)
		}
	}
	if a.play.Tool == "charge" {
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
	return made[len(made)-1].Answer, nil
}

// partial checks that everything that is shown was said.
func (a *observedRun) partial(shown []kit.Message) error {
	var said []kit.Invocation
	for turn := 1; turn <= 2; turn++ {
		said = append(said, a.play.Performances(turn)...)
	}
	begins := func(text string, of func(kit.Invocation) string) bool {
		return text == "" || slices.ContainsFunc(said, func(pf kit.Invocation) bool { return strings.HasPrefix(of(pf), text) })
	}
	for _, m := range shown {
		ok := true
		switch m.Role {
		case "reasoning":
			ok = begins(m.Content, func(pf kit.Invocation) string { return pf.Thought })
		case "assistant":
			ok = begins(m.Content, func(pf kit.Invocation) string { return pf.Text })
			for i, c := range m.ToolCalls {
				ok = ok && begins(c.Function.Arguments, func(pf kit.Invocation) string {
					if i < len(pf.Calls) {
						return pf.Calls[i].Arguments
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
func (a *observedRun) once(records []kit.Record) error {
	done := map[string]bool{}
	for _, r := range records {
		if r.Kind != "done" {
			continue
		}
		if done[r.Step] {
			return fmt.Errorf("step %s is done twice", r.Step)
		}
		done[r.Step] = true
		turn := map[string]int{"1/model": 1, "2/model": 2, "1/tools/0": kit.TurnTool}
		of, ok := turn[r.Step]
		if !ok {
			continue
		}
		for _, pf := range a.play.Performances(of) {
			if strings.HasPrefix(pf.Note, "1 ") { // of the second call of a turn
				continue
			}
			if pf.Began.After(r.At) {
				return fmt.Errorf("step %s was done at %s, and was called again at %s", r.Step, r.At, pf.Began)
			}
		}
	}
	return nil
}

// nothingBehind checks that who has all of it is told to stop.
func (a *observedRun) nothingBehind(ctx context.Context, at *kit.Endpoint) error {
	resp, err := at.Get(ctx, kit.EventsPath(a.reader.In), a.reader.Last())
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
func (a *observedRun) readAgain(ctx context.Context, at *kit.Endpoint, shown []kit.Message) error {
	f := at.Quiet(ctx, a.reader.In)
	f.Agent = a.reader.Agent
	if err := f.Read(); err != nil {
		return fmt.Errorf("a late reader: %w", err)
	}
	if err := oneRun(f.Events); err != nil {
		return fmt.Errorf("a late reader: %w", err)
	}
	late, err := kit.Reduce(f.In.Messages, f.Events)
	if err != nil {
		return fmt.Errorf("a late reader: %w", err)
	}
	return sameMessages("a late reader", shown, late)
}

// join has the run joined by somebody who has nothing.
func (a *observedRun) join(ctx context.Context, at *kit.Endpoint, shown []kit.Message) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.Url(kit.EventsPath(a.reader.In)+"?join=true&limit=500"), nil)
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
	var events []kit.Event
	for _, i := range page.Items {
		e := kit.Event{Data: i.Event}
		e.Type = e.Member("type")
		events = append(events, e)
	}
	if err := oneRun(events); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	joined, err := kit.Reduce(nil, events)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	return sameMessages("join", shown, joined)
}

func sameMessages(who string, want, got []kit.Message) error {
	if diff := cmp.Diff(kit.WithoutEmptied(want), kit.WithoutEmptied(got)); diff != "" {
		return fmt.Errorf("%s (-the reader +%s):\n%s", who, who, diff)
	}
	return nil
}
