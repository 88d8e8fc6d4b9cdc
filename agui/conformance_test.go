package agui

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// streamCase is a conformance case, with the parts that apply to a server.
type streamCase struct {
	Name   string            `json:"name"`
	Input  json.RawMessage   `json:"input"`
	Stream []json.RawMessage `json:"stream"`
	Expect struct {
		Outcome          string         `json:"outcome"`
		EventTypes       []string       `json:"eventTypes"`
		EventTypesAbsent []string       `json:"eventTypesAbsent"`
		EventPaths       map[string]any `json:"eventPaths"`
		EventAbsentPaths []string       `json:"eventAbsentPaths"`
		Warnings         []string       `json:"warnings"`
		NoWarnings       bool           `json:"noWarnings"`
		RunError         any            `json:"runError"`
		MessageCount     *int           `json:"messageCount"`
		Messages         []any          `json:"messages"`
		State            *any           `json:"state"`
		// Refused is set only in our own cases: the rule that refuses an event, for a consumer and
		// for a producer.
		Refused *refusal `json:"refused"`
		Guard   *refusal `json:"guard"`
	} `json:"expect"`
	ExpectOverrides struct {
		TypeScript struct {
			EventTypes []string `json:"eventTypes"`
		} `json:"typescript"`
	} `json:"expectOverrides"`
}

// notApplicable names the cases that do not apply to a server, with the reason.
var notApplicable = map[string]struct{ expectation, reason string }{
	"era-0-0-39-flattens-content":              {"warnings", "describes the messages of a client to a 0.0.39 agent"},
	"era-0-0-57-subagent-dropped-with-warning": {"warnings eventTypesAbsent", "describes a client pinned to 0.0.57, which drops subagents"},
	"state-delta-unappliable-warns-and-keeps":  {"warnings", "pins the wording of the reference client; TestReducerWarnings has the rule"},
	"era-0-0-47-upgrades-binary-content":       {"request", "a server sends no request; TestLegacyBinary has the upgrade"},
	"era-current-peer-keeps-modern-content":    {"request", "a server sends no request"},
	"current-peer-declares-protocol-version":   {"request", "a server sends no request"},
	"era-pinned-peer-omits-protocol-version":   {"requestAbsentPaths", "a server sends no request"},
}

// refusal is the index of an event and the rule that refuses it. "decode" is a value that the
// schema refuses, "reduction" an event that does not fit the client's state.
type refusal struct {
	Index int  `json:"index"`
	Rule  Rule `json:"rule"`
}

// refusals are the rules that refuse events in the official cases that must fail.
var refusals = map[string]refusal{
	"chunk-conflicting-role-fatal":            {2, RuleChunkConflict},
	"chunk-conflicting-tool-name-fatal":       {2, RuleChunkConflict},
	"content-without-start-fatal":             {1, RuleNotOpen},
	"custom-closes-chunk-stream-fatal":        {3, RuleFirstChunk},
	"event-after-run-finished-fatal":          {2, RuleAfterTerminal},
	"first-chunk-missing-id-fatal":            {1, RuleFirstChunk},
	"first-event-not-run-started-fatal":       {0, RuleFirstEvent},
	"first-tool-chunk-missing-name-fatal":     {1, RuleFirstChunk},
	"malformed-known-field-fatal":             {2, "decode /delta"},
	"nested-run-started-fatal":                {1, RuleRunOpen},
	"open-message-at-run-finished-fatal":      {3, RuleOpenAtFinish},
	"reasoning-discipline-verified":           {1, RuleNotOpen},
	"reasoning-message-wrong-role-fatal":      {1, "decode /role"},
	"run-finished-with-active-subagent-fatal": {5, RuleOpenAtFinish},
	"step-finished-without-start-fatal":       {1, RuleNotOpen},
	"subagent-attribution-mismatch-fatal":     {3, RuleOwner},
	"subagent-finished-unstarted-fatal":       {1, RuleNotOpen},
	"subagent-started-missing-name-fatal":     {1, "decode /name"},
	"unknown-enum-value-role-fatal":           {1, "decode /role"},
	"unknown-outcome-array-fatal":             {1, "decode /outcome"},
}

// producerFaults are the cases that a consumer accepts, but a producer may not send: the guard
// refuses them by a warning.
var producerFaults = []string{
	"activity-delta-missing-target-tolerated",
	"encrypted-value-unknown-entity-tolerated",
	"era-0-0-45-thinking-translated",
	"producer-declares-newer-version-warns",
	"producer-declares-uninterpretable-version-warns",
	"state-delta-unappliable-warns-and-keeps",
	"state-delta-unknown-op-dropped",
	"unknown-event-dropped",
	"unknown-outcome-stripped",
	"unknown-part-in-message-list",
	"unknown-property-stripped",
}

func TestConformanceConsumer(t *testing.T) {
	t.Parallel()
	for _, c := range officialStreams(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if want, ok := refusals[c.Name]; ok {
				c.Expect.Refused = &want
			}
			checkConsumer(t, c)
		})
	}
}

// TestOwnStreams: our own cases have the form of the official ones, which lack what a server needs.
func TestOwnStreams(t *testing.T) {
	t.Parallel()
	for _, c := range loadStreams(t, filepath.Join("testdata", "streams")) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			checkConsumer(t, c)
			checkRefusal(t, produce(t, c), c.Expect.Guard)
		})
	}
}

// checkConsumer consumes the stream of a case, and checks what it expects.
func checkConsumer(t *testing.T, c streamCase) {
	t.Helper()
	got := consume(t, c)
	checkRefusal(t, got.refusal, c.Expect.Refused)
	if refused := got.refusal != nil; refused != (c.Expect.Outcome == "failed") {
		t.Errorf("refusal = %v, want the outcome %s", refused, c.Expect.Outcome)
	}
	checkEvents(t, c, got)
	checkWarnings(t, c, got)
	checkResult(t, c, got)
}

func TestConformanceProducer(t *testing.T) {
	t.Parallel()
	for _, c := range officialStreams(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			_, fatal := refusals[c.Name]
			want := fatal || slices.Contains(producerFaults, c.Name)
			if refused := produce(t, c); (refused != nil) != want {
				t.Errorf("refused = %+v, want %v", refused, want)
			}
		})
	}
}

// produce returns the pipeline of a producer, which strips and repairs nothing.
func produce(t *testing.T, c streamCase) *refusal {
	t.Helper()
	reducer := c.reducer(t)
	var guard Guard
	for i, raw := range c.Stream {
		e, err := Decode(raw)
		if err == nil {
			err = guard.Check(e)
		}
		if err == nil {
			err = reducer.Apply(e)
		}
		switch {
		case err != nil:
			return &refusal{i, ruleOf(err)}
		case len(reducer.Warnings()) > 0:
			return &refusal{i, "reduction"}
		}
	}
	if err := guard.End(); err != nil {
		return &refusal{len(c.Stream), ruleOf(err)}
	}
	return nil
}

// consumed is the result of a stream.
type consumed struct {
	events   []Event
	warnings []string
	refusal  *refusal
	thinking ThinkingUpgrade
	reducer  *Reducer
}

// consume returns the pipeline of a consumer: decode, upgrade, strip, expand, verify, reduce.
func consume(t *testing.T, c streamCase) consumed {
	t.Helper()
	got := consumed{reducer: c.reducer(t)}
	var chunks ChunkExpander
	var verifier Verifier
	for i, raw := range c.Stream {
		if err := got.take(t, raw, &chunks, &verifier); err != nil {
			got.refusal = &refusal{i, ruleOf(err)}
			break
		}
	}
	for _, w := range got.reducer.Warnings() {
		got.warnings = append(got.warnings, w.String())
	}
	return got
}

// reducer starts with the state of the case's client.
func (c streamCase) reducer(t *testing.T) *Reducer {
	t.Helper()
	var start RunAgentInput
	if c.Input != nil {
		raw := `{"threadId":"t","runId":"r",` + strings.TrimPrefix(strings.TrimSpace(string(c.Input)), "{")
		if err := json.Unmarshal([]byte(raw), &start); err != nil {
			t.Fatal(err)
		}
	}
	return NewReducer(start.Messages, start.State)
}

// take consumes an event.
func (got *consumed) take(t *testing.T, raw json.RawMessage, chunks *ChunkExpander, verifier *Verifier) error {
	e, err := Decode(raw)
	if err != nil {
		return err
	}
	checkRoundTrip(t, e)
	e, warnings, err := got.thinking.Upgrade(e)
	if err != nil {
		return err
	}
	e, stripped := Strip(e)
	for _, w := range append(warnings, stripped...) {
		got.warnings = append(got.warnings, w.String())
	}
	if e == nil {
		return nil
	}
	events, err := chunks.Expand(e)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := verifier.Check(e); err != nil {
			return err
		}
		if err := got.reducer.Apply(e); err != nil {
			return err
		}
		got.events = append(got.events, e)
		checkSchema(t, "", encode(t, e))
	}
	return nil
}

// checkRefusal compares refusals.
func checkRefusal(t *testing.T, got, want *refusal) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

// ruleOf returns the protocol rule that an error is about.
func ruleOf(err error) Rule {
	var order *OrderError
	var decode *DecodeError
	switch {
	case errors.As(err, &order):
		return order.Rule
	case errors.As(err, &decode):
		return Rule("decode " + decode.Pointer)
	}
	return "?"
}

// checkEvents checks the delivered events of a case.
func checkEvents(t *testing.T, c streamCase, got consumed) {
	t.Helper()
	var types []string
	var docs []any
	for _, e := range got.events {
		types = append(types, string(e.EventType()))
		docs = append(docs, parse(t, encode(t, e)))
	}
	for _, want := range [][]string{c.Expect.EventTypes, c.ExpectOverrides.TypeScript.EventTypes} {
		if want != nil {
			if diff := cmp.Diff(want, types); diff != "" {
				t.Errorf("delivered types (-want +got):\n%s", diff)
			}
		}
	}
	for _, absent := range c.Expect.EventTypesAbsent {
		if slices.Contains(types, absent) && !skips(c, "eventTypesAbsent") {
			t.Errorf("event %s: got it, want it left out", absent)
		}
	}
	for path, want := range c.Expect.EventPaths {
		if value, ok := lookUp(docs, path); !ok || !reflect.DeepEqual(value, want) {
			t.Errorf("%s = %v (there: %v), want %v", path, value, ok, want)
		}
	}
	for _, path := range c.Expect.EventAbsentPaths {
		if value, ok := lookUp(docs, path); ok {
			t.Errorf("%s = %v, want it absent", path, value)
		}
	}
	if want := c.Expect.RunError; want != nil {
		checkRunError(t, want, got)
	}
}

// checkRunError checks the error of a case.
func checkRunError(t *testing.T, want any, got consumed) {
	t.Helper()
	text, _ := want.(string)
	for _, e := range got.events {
		if failure, ok := e.(*RunError); ok && strings.Contains(failure.Message, text) {
			return
		}
	}
	t.Errorf("no RUN_ERROR with %q", text)
}

// checkWarnings checks the warnings of a case.
func checkWarnings(t *testing.T, c streamCase, got consumed) {
	t.Helper()
	if skips(c, "warnings") {
		return
	}
	if c.Expect.NoWarnings && len(got.warnings) > 0 {
		t.Errorf("warnings = %v, want none", got.warnings)
	}
	for _, want := range c.Expect.Warnings {
		if !slices.ContainsFunc(got.warnings, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("warnings = %v, want one with %q", got.warnings, want)
		}
	}
}

// checkResult checks the messages and the state of a case.
func checkResult(t *testing.T, c streamCase, got consumed) {
	t.Helper()
	raw, err := json.Marshal(got.reducer.Messages())
	if err != nil {
		t.Fatal(err)
	}
	messages := parse(t, raw).([]any)
	if want := c.Expect.MessageCount; want != nil && len(messages) != *want {
		t.Errorf("%d messages, want %d: %s", len(messages), *want, raw)
	}
	if c.Expect.Messages != nil && !skips(c, "messages") {
		if diff := subset(c.Expect.Messages, messages, "messages"); diff != "" {
			t.Errorf("messages: %s", diff)
		}
	}
	if c.Expect.State != nil {
		if diff := subset(*c.Expect.State, parse(t, got.reducer.State()), "state"); diff != "" {
			t.Errorf("state: %s", diff)
		}
	}
}

// skips reports whether an expectation does not apply to a server.
func skips(c streamCase, expectation string) bool {
	na, ok := notApplicable[c.Name]
	if !ok || !slices.Contains(strings.Fields(na.expectation), expectation) {
		return false
	}
	return na.reason != ""
}

// subset compares objects only on the members that want names.
func subset(want, got any, at string) string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s = %v, want an object", at, got)
		}
		for name, value := range want {
			if diff := subset(value, object[name], at+"."+name); diff != "" {
				return diff
			}
		}
		return ""
	case []any:
		array, ok := got.([]any)
		if !ok || len(array) != len(want) {
			return fmt.Sprintf("%s = %v, want %d elements", at, got, len(want))
		}
		for i := range want {
			if diff := subset(want[i], array[i], fmt.Sprint(at, ".", i)); diff != "" {
				return diff
			}
		}
		return ""
	default:
		if !reflect.DeepEqual(want, got) {
			return fmt.Sprintf("%s = %v, want %v", at, got, want)
		}
		return ""
	}
}

// lookUp follows a path like "2.delta.0.value" through the delivered events.
func lookUp(docs []any, path string) (any, bool) {
	var at any = docs
	for token := range strings.SplitSeq(path, ".") {
		switch value := at.(type) {
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(value) {
				return nil, false
			}
			at = value[i]
		case map[string]any:
			next, ok := value[token]
			if !ok {
				return nil, false
			}
			at = next
		default:
			return nil, false
		}
	}
	return at, true
}

// officialStreams returns the cases of the specification, as its manifest lists them.
func officialStreams(t *testing.T) []streamCase {
	t.Helper()
	dir := filepath.Join(sharedDir(t), "conformance", "streams")
	manifest, err := os.ReadFile(filepath.Join(dir, "MANIFEST.txt"))
	if err != nil {
		t.Fatal(err)
	}
	cases := loadStreams(t, dir)
	for _, c := range cases {
		if !strings.Contains(string(manifest), c.Name) {
			t.Errorf("%s: got no entry in MANIFEST.txt, want one", c.Name)
		}
	}
	return cases
}

// loadStreams reads the cases of a folder.
func loadStreams(t *testing.T, dir string) []streamCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("cases in %s: got %d (%v), want some", dir, len(files), err)
	}
	var cases []streamCase
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c streamCase
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if c.Name != strings.TrimSuffix(filepath.Base(file), ".json") {
			t.Errorf("name of the case in %s = %q, want the name of the file", file, c.Name)
		}
		cases = append(cases, c)
	}
	return cases
}

// sharedDir finds the specification's data files next to the repository.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("go.mod above the package: got none, want one")
		}
		dir = parent
	}
	shared := filepath.Join(dir, "..", "shared", "agui")
	if _, err := os.Stat(filepath.Join(shared, "conformance")); err != nil {
		t.Skip("no data files of the AG-UI specification in ../shared/agui")
	}
	return shared
}
