package schedules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// Schedule is what a client writes about runs that start at certain times. Times, durations and
// calendar fields stay text, as the client wrote them, so that the API returns them unchanged;
// Parse has validated them.
type Schedule struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	// ThreadID is the thread that all runs belong to; "" = each run has a thread of its own.
	ThreadID string `json:"threadId,omitempty"`
	// RunAs is the subject of the configured service as which the runs act; "" = they act as the
	// person who wrote the schedule, without roles.
	RunAs string `json:"runAs,omitempty"`
	Spec
	// Overlap is the name of a policy: what happens to a time at which an earlier run of the
	// schedule is still active or waiting. Default: skip.
	Overlap string `json:"overlap"`
	// CatchupWindow is how late a missed time may still fire, for instance after an outage of
	// Temporal. Default: 1h.
	CatchupWindow string `json:"catchupWindow"`
	// PauseOnFailure pauses the schedule when a run ends with an error.
	PauseOnFailure bool `json:"pauseOnFailure"`
	// OnBusy is what happens to a run whose thread has another active run. Default: enqueue.
	OnBusy runs.OnBusy `json:"onBusy"`
	Note   string      `json:"note,omitempty"`
	// Input is the input of each run, a RunAgentInput without IDs: messages, state, tools, context,
	// forwardedProps. RunInput completes it.
	Input json.RawMessage `json:"input,omitempty"`
}

// Defaults of members that a schedule does not have.
const (
	defaultOverlap = "skip"
	defaultCatchup = "1h"
	defaultOnBusy  = runs.OnBusyEnqueue
	defaultZone    = "UTC"
)

// Bounds: the bytes of an ID and of a note, and the shortest catch-up window that Temporal accepts.
const (
	MaxIDBytes = 256
	maxNote    = 1000
	minCatchup = 10 * time.Second
)

// overlaps are the overlap policies by name. All are Temporal's own, except terminate_other: a
// firing that Temporal terminates could not cancel its run, and nothing else would. So the firing
// is cancelled instead, and runs.FiringInput.TryCancel keeps it from waiting for the end of its
// run.
var overlaps = []struct {
	name   string
	policy enums.ScheduleOverlapPolicy
}{
	{"skip", enums.SCHEDULE_OVERLAP_POLICY_SKIP},
	{"buffer_one", enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE},
	{"buffer_all", enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL},
	{"cancel_other", enums.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER},
	{overlapTerminate, enums.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER},
	{"allow_all", enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL},
}

// overlapTerminate cancels the earlier run without waiting for its end.
const overlapTerminate = "terminate_other"

// Overlap returns a policy by its name; pointer is the JSON pointer for the error. Errors:
// *FieldError.
func Overlap(name, pointer string) (enums.ScheduleOverlapPolicy, error) {
	var names []string
	for _, o := range overlaps {
		if o.name == name {
			return o.policy, nil
		}
		names = append(names, o.name)
	}
	return 0, &FieldError{pointer, "must be one of " + strings.Join(names, ", ")}
}

// Parse decodes a schedule from JSON, sets the defaults, and validates it. It does not check the
// schedule's ID, the thread's ID, nor whether the agent exists: the API does. Errors: *FieldError,
// *agui.DecodeError, both with a pointer into the schedule.
func Parse(body []byte) (*Schedule, error) {
	s := &Schedule{Spec: Spec{TimeZone: defaultZone}, Overlap: defaultOverlap, CatchupWindow: defaultCatchup, OnBusy: defaultOnBusy}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(s); err != nil {
		return nil, syntaxError(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &FieldError{"", "must be one JSON object"}
	}
	return s, s.check()
}

// syntaxError maps an error of encoding/json to a *FieldError. The fields of the embedded Spec are
// members of the schedule itself, so "Spec." is removed from the path.
func syntaxError(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		path := strings.TrimPrefix(kind.Field, "Spec.")
		return &FieldError{"/" + strings.ReplaceAll(path, ".", "/"), "must not be a JSON " + kind.Value}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok { // encoding/json has no error type for this
		return &FieldError{"", fmt.Sprintf("must not have the member %.100s", name)}
	}
	return &FieldError{"", "must be a JSON object"}
}

// check validates all members but the IDs and the agent.
func (s *Schedule) check() error {
	if _, err := Overlap(s.Overlap, "/overlap"); err != nil {
		return err
	}
	if _, err := s.Spec.Temporal(); err != nil {
		return err
	}
	window, err := duration("/catchupWindow", s.CatchupWindow)
	switch {
	case err != nil:
		return err
	case window < minCatchup:
		return &FieldError{"/catchupWindow", fmt.Sprintf("must be at least %s", minCatchup)}
	case !slices.Contains([]runs.OnBusy{runs.OnBusyReject, runs.OnBusyEnqueue, runs.OnBusyInterrupt}, s.OnBusy):
		return &FieldError{"/onBusy", `must be "enqueue", "reject" or "interrupt"`}
	case len(s.Note) > maxNote:
		return &FieldError{"/note", fmt.Sprintf("may have at most %d bytes", maxNote)}
	}
	_, err = s.RunInput(stream.Run{})
	return err
}

// Digest returns a digest of the schedule that does not depend on how its JSON was written. The API
// compares it to find out whether a repeated request has the same schedule.
func (s *Schedule) Digest() (string, error) {
	input, err := s.RunInput(stream.Run{})
	if err != nil {
		return "", err
	}
	scheduleCopy, content := *s, input.Digest()
	scheduleCopy.Input = nil
	raw, err := json.Marshal(scheduleCopy)
	if err != nil {
		return "", fmt.Errorf("schedules: encode: %w", err)
	}
	sum := sha256.Sum256(append(raw, content[:]...))
	return hex.EncodeToString(sum[:]), nil
}
