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

// check checks a run that has ended, whatever fault was injected:
//
//   - its reader saw one legal run, no event twice, and has the messages that the script recorded;
//   - readers that come later or join have the same messages;
//   - no step that the log has as done ran again.
//
// The endpoint serves the later readers.
func (r *observedRun) check(ctx context.Context, at *kit.Endpoint) error {
	shown, err := r.shownMessages()
	if err != nil {
		return fmt.Errorf("the reader: %w", err)
	}
	records, err := at.Records(ctx, r.reader.In)
	if err != nil {
		return err
	}
	return errors.Join(r.checkOutcome(), r.checkContent(shown), r.checkOnce(records), r.checkNothingAfter(ctx, at), r.checkReread(ctx, at, shown), r.checkJoin(ctx, at, shown))
}

// shownMessages returns the messages that the reader has at the end. It accepts the warnings about
// retracted calls and ignores empty, retracted reasoning.
func (r *observedRun) shownMessages() ([]kit.Message, error) {
	events := r.reader.Events
	if err := checkOneRun(events); err != nil {
		return nil, err
	}
	shown, err := kit.Reduce(r.reader.In.Messages, events, kit.RetractWarning)
	return kit.WithoutEmptyReasoning(shown), err
}

// checkOneRun checks that the first event is the only RUN_STARTED, and the last the only terminal
// event.
func checkOneRun(events []kit.Event) error {
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
		return fmt.Errorf("%d beginnings and %d ends: %q", started, ended, kit.EventLines(events))
	}
	return nil
}

// checkOutcome checks the terminal event.
func (r *observedRun) checkOutcome() error {
	last := r.reader.Events[len(r.reader.Events)-1]
	got := kit.Outcome(last)
	if last.Type == "RUN_ERROR" {
		got = last.Member("code")
	}
	want := []string{"success"}
	switch {
	case r.wantError != "":
		want = []string{r.wantError}
	case r.cancelled && r.phase.name == phaseDone: // either may reach the run first
		want = []string{"success", "cancelled"}
	case r.cancelled && r.phase.name != phaseEnded:
		want = []string{"cancelled"}
	}
	if !slices.Contains(want, got) {
		return fmt.Errorf("the run ended with %s, want %s", last.Data, want)
	}
	return nil
}

// checkContent compares the shown messages with what the successful attempts sent. If the run did
// not succeed, every shown message must be the beginning of a sent one.
func (r *observedRun) checkContent(shown []kit.Message) error {
	if last := r.reader.Events[len(r.reader.Events)-1]; kit.Outcome(last) != "success" {
		return r.checkPartial(shown)
	}
	want, err := r.wantMessages(shown)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, kit.ByCall(slices.Clone(shown)), kit.IgnoreIDs); diff != "" {
		return fmt.Errorf("messages (-sent +shown):\n%s", diff)
	}
	return nil
}

// wantMessages returns the messages by the script's record: for each turn those of the last attempt
// that finished.
func (r *observedRun) wantMessages(shown []kit.Message) ([]kit.Message, error) {
	want := slices.Clone(r.reader.In.Messages)
	for turn := 1; turn <= 2; turn++ {
		all := r.script.Invocations(turn)
		all = slices.DeleteFunc(all, func(call kit.Invocation) bool { return !call.Finished })
		if len(all) == 0 {
			return nil, fmt.Errorf("the run ended well, but no model call of turn %d", turn)
		}
		said := all[len(all)-1]
		if said.Thought != "" {
			want = append(want, kit.Message{Role: "reasoning", Content: said.Thought})
		}
		answer := kit.ToolCallMessage(said.Calls...)
		answer.Content = said.Text
		want = append(want, answer)
		for i, c := range said.Calls {
			result, err := r.wantToolResult(c, i, shown)
			if err != nil {
				return nil, err
			}
			want = append(want, kit.ToolMessage(result))
		}
	}
	return want, nil
}

// Tool results that Perdure writes: for a call whose worker died, and for a call with invalid
// arguments.
const (
	unknownOutcome = "Whether it took effect is unknown"
	invalidCall    = "invalid arguments: "
)

// wantToolResult returns the result of a call: what the tool returned the last time it ran or, if
// it has no result, the shown result with Perdure's explanation.
func (r *observedRun) wantToolResult(c kit.ModelCall, nth int, shown []kit.Message) (string, error) {
	var args struct {
		Note string `json:"note"`
	}
	result := ""
	if at := slices.IndexFunc(shown, func(m kit.Message) bool { return m.Role == "tool" }); at >= 0 && at+nth < len(shown) {
		result = kit.ByCall(slices.Clone(shown))[at+nth].Content
	}
	if json.Unmarshal([]byte(c.Arguments), &args) != nil {
		if !strings.HasPrefix(result, invalidCall) {
			return "", fmt.Errorf("the result of a call with half its arguments is %q", result)
		}
		return result, nil
	}
	calls := slices.DeleteFunc(r.script.Invocations(kit.TurnTool), func(call kit.Invocation) bool { return call.Note != args.Note })
	for _, call := range calls {
		if call.Key != calls[0].Key || call.Key == "" {
			return "", fmt.Errorf("two attempts of a call have the idempotency keys %q and %q", calls[0].Key, call.Key)
		}
	}
	if r.script.Tool == "charge" {
		switch {
		case len(calls) > 1:
			return "", fmt.Errorf("a tool that is not idempotent ran %d times", len(calls))
		case r.killed && strings.Contains(result, unknownOutcome):
			return result, nil
		}
	}
	if len(calls) == 0 {
		return "", fmt.Errorf("the tool did not run, and its result is %q", result)
	}
	return calls[len(calls)-1].Answer, nil
}

// checkPartial checks that every shown message is the beginning of a sent one.
func (r *observedRun) checkPartial(shown []kit.Message) error {
	var said []kit.Invocation
	for turn := 1; turn <= 2; turn++ {
		said = append(said, r.script.Invocations(turn)...)
	}
	begins := func(text string, of func(kit.Invocation) string) bool {
		return text == "" || slices.ContainsFunc(said, func(call kit.Invocation) bool { return strings.HasPrefix(of(call), text) })
	}
	for _, m := range shown {
		ok := true
		switch m.Role {
		case "reasoning":
			ok = begins(m.Content, func(call kit.Invocation) string { return call.Thought })
		case "assistant":
			ok = begins(m.Content, func(call kit.Invocation) string { return call.Text })
			for i, c := range m.ToolCalls {
				ok = ok && begins(c.Function.Arguments, func(call kit.Invocation) string {
					if i < len(call.Calls) {
						return call.Calls[i].Arguments
					}
					return ""
				})
			}
		}
		if !ok {
			return fmt.Errorf("the model did not send %+v", m)
		}
	}
	return nil
}

// checkOnce checks that each step is done once, and that the model and the tool were not called for
// it after that. The log and the script use the same clock.
func (r *observedRun) checkOnce(records []kit.Record) error {
	done := map[string]bool{}
	for _, record := range records {
		if record.Kind != "done" {
			continue
		}
		if done[record.Step] {
			return fmt.Errorf("step %s is done twice", record.Step)
		}
		done[record.Step] = true
		turn := map[string]int{"1/model": 1, "2/model": 2, "1/tools/0": kit.TurnTool}
		of, ok := turn[record.Step]
		if !ok {
			continue
		}
		for _, call := range r.script.Invocations(of) {
			if strings.HasPrefix(call.Note, "1 ") { // the second call of a turn
				continue
			}
			if call.Began.After(record.At) {
				return fmt.Errorf("step %s was done at %s, and was called again at %s", record.Step, record.At, call.Began)
			}
		}
	}
	return nil
}

// checkNothingAfter checks that a reader with all events gets 204.
func (r *observedRun) checkNothingAfter(ctx context.Context, at *kit.Endpoint) error {
	resp, err := at.Get(ctx, kit.EventsPath(r.reader.In), r.reader.Last())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("after the end: %s, want 204", resp.Status)
	}
	return nil
}

// checkReread reads the run again from its start.
func (r *observedRun) checkReread(ctx context.Context, at *kit.Endpoint, shown []kit.Message) error {
	f := at.NewUnrecordedFollower(ctx, r.reader.In)
	f.Agent = r.reader.Agent
	if err := f.Read(); err != nil {
		return fmt.Errorf("a late reader: %w", err)
	}
	if err := checkOneRun(f.Events); err != nil {
		return fmt.Errorf("a late reader: %w", err)
	}
	late, err := kit.Reduce(f.In.Messages, f.Events)
	if err != nil {
		return fmt.Errorf("a late reader: %w", err)
	}
	return sameMessages("a late reader", shown, late)
}

// checkJoin joins the run as a reader without earlier messages.
func (r *observedRun) checkJoin(ctx context.Context, at *kit.Endpoint, shown []kit.Message) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL(kit.EventsPath(r.reader.In)+"?join=true&limit=500"), nil)
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
	if err := checkOneRun(events); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	joined, err := kit.Reduce(nil, events)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	return sameMessages("join", shown, joined)
}

// sameMessages compares the messages of a reader.
func sameMessages(reader string, want, got []kit.Message) error {
	if diff := cmp.Diff(kit.WithoutEmptyReasoning(want), kit.WithoutEmptyReasoning(got)); diff != "" {
		return fmt.Errorf("%s (-the reader +%s):\n%s", reader, reader, diff)
	}
	return nil
}
