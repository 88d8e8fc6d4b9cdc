package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// streamCase is a conformance case of the AG-UI specification, with what applies to a stream of
// normalized events.
type streamCase struct {
	Name   string            `json:"name"`
	Stream []json.RawMessage `json:"stream"`
	Expect struct {
		Outcome          string   `json:"outcome"`
		EventTypes       []string `json:"eventTypes"`
		EventTypesAbsent []string `json:"eventTypesAbsent"`
		Warnings         []string `json:"warnings"`
		NoWarnings       bool     `json:"noWarnings"`
	} `json:"expect"`
	ExpectOverrides struct {
		TypeScript struct {
			EventTypes []string `json:"eventTypes"`
		} `json:"typescript"`
	} `json:"expectOverrides"`
}

// otherWarnings are the cases whose warnings are not about the form or the order of events, with
// the reason.
var otherWarnings = map[string]string{
	"era-0-0-39-flattens-content":              "describes the messages of a client to a 0.0.39 agent",
	"era-0-0-57-subagent-dropped-with-warning": "describes a client pinned to 0.0.57, which drops subagents",
	"activity-delta-missing-target-tolerated":  "a reducer warns",
	"encrypted-value-unknown-entity-tolerated": "a reducer warns",
	"state-delta-unappliable-warns-and-keeps":  "a reducer warns",
}

// TestConformance: the official streams of both generations are accepted or refused as the
// specification says, with the rule that agui's Verifier names, over HTTP.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, c := range officialStreams(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for _, raw := range c.Stream {
				var line bytes.Buffer
				if err := json.Compact(&line, raw); err != nil {
					t.Fatal(err)
				}
				b.WriteString("data: " + line.String() + "\n\n")
			}
			got := run(t, serve(t, b.String()), Call{})
			if refused := got.err != nil; refused != (c.Expect.Outcome == "failed") {
				t.Fatalf("error = %v, want the outcome %q", got.err, c.Expect.Outcome)
			}
			if broken, ok := errors.AsType[*ProtocolError](got.err); got.err != nil && (!ok || broken.Rule == "") {
				t.Errorf("error = %v, want a ProtocolError with a rule", got.err)
			}
			checkTypes(t, c, got)
			checkWarnings(t, c, got)
		})
	}
}

// checkTypes checks the types of the yielded events.
func checkTypes(t *testing.T, c streamCase, got received) {
	t.Helper()
	want := c.Expect.EventTypes
	if own := c.ExpectOverrides.TypeScript.EventTypes; own != nil {
		want = own
	}
	if want != nil && !slices.Equal(got.types(), want) {
		t.Errorf("types = %q, want %q", got.types(), want)
	}
	for _, absent := range c.Expect.EventTypesAbsent {
		if slices.Contains(got.types(), absent) && c.Name != "era-0-0-57-subagent-dropped-with-warning" {
			t.Errorf("types = %q, want none of %s", got.types(), absent)
		}
	}
	for _, e := range got.events {
		if strings.HasSuffix(string(e.EventType()), "_CHUNK") {
			t.Errorf("%s was not expanded", e.EventType())
		}
	}
}

// checkWarnings checks the warnings of a case.
func checkWarnings(t *testing.T, c streamCase, got received) {
	t.Helper()
	if otherWarnings[c.Name] != "" {
		return
	}
	var all []string
	for _, e := range got.events {
		for _, w := range e.Warnings {
			all = append(all, w.String())
		}
	}
	if c.Expect.NoWarnings && len(all) > 0 {
		t.Errorf("warnings = %q, want none", all)
	}
	for _, want := range c.Expect.Warnings {
		if !slices.ContainsFunc(all, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("warnings = %q, want one with %q", all, want)
		}
	}
}

// officialStreams returns the cases of the specification, which is next to the repository.
func officialStreams(t *testing.T) []streamCase {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "..", "shared", "agui", "conformance", "streams", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no data files of the AG-UI specification in ../shared/agui")
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
		cases = append(cases, c)
	}
	return cases
}
