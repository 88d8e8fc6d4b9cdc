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

// Schedule is what a client says about runs that begin at certain times. Times, durations and
// fields of calendars are text, as they were written; Parse has checked them.
type Schedule struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	// ThreadID is the thread that each run continues; empty = each run has one of its own.
	ThreadID string `json:"threadId,omitempty"`
	Spec
	// Overlap is what becomes of a time that comes while what the one before began is not over.
	Overlap string `json:"overlap"`
	// CatchupWindow is how late a time may be made up for that was missed because nothing ran.
	CatchupWindow string `json:"catchupWindow"`
	// PauseOnFailure pauses the schedule when a run ends with an error.
	PauseOnFailure bool `json:"pauseOnFailure"`
	// OnBusy is what becomes of a run whose thread has another one that is active.
	OnBusy runs.OnBusy `json:"onBusy"`
	Note   string      `json:"note,omitempty"`
	// Input is that of each run, without ids: messages, state, tools, context, forwardedProps.
	Input json.RawMessage `json:"input,omitempty"`
}

// What goes without saying.
const (
	defaultOverlap = "skip"
	defaultCatchup = "1h"
	defaultOnBusy  = runs.OnBusyEnqueue
	defaultZone    = "UTC"
)

// Bounds: bytes of an id and of a note, and Temporal's least catch-up window.
const (
	MaxIDBytes = 256
	maxNote    = 1000
	minCatchup = 10 * time.Second
)

// overlaps are Temporal's policies by their names, but for terminate_other: a firing that Temporal
// terminates could not cancel its run, and if the schedule is paused by then nobody else would.
// workflows.Firing.TryCancel is the difference.
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

// overlapTerminate does not wait for the end of what it cancels.
const overlapTerminate = "terminate_other"

// Overlap returns a policy by its name; at is where the name stands. Errors: *FieldError.
func Overlap(name, at string) (enums.ScheduleOverlapPolicy, error) {
	var names []string
	for _, o := range overlaps {
		if o.name == name {
			return o.policy, nil
		}
		names = append(names, o.name)
	}
	return 0, &FieldError{at, "must be one of " + strings.Join(names, ", ")}
}

// Parse reads a schedule and completes it with what goes without saying. It leaves ids and the
// agent to whoever knows them. Errors: *FieldError, *agui.DecodeError with a pointer into the
// schedule.
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

// syntaxError tells where the text is no schedule.
func syntaxError(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		path := strings.TrimPrefix(kind.Field, "Spec.")
		return &FieldError{"/" + strings.ReplaceAll(path, ".", "/"), "must not be a JSON " + kind.Value}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok { // it has no type of its own
		return &FieldError{"", fmt.Sprintf("has the member %.100s, which no schedule has", name)}
	}
	return &FieldError{"", "must be a JSON object"}
}

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

// Digest is over all that the schedule says, however it was written.
func (s *Schedule) Digest() (string, error) {
	input, err := s.RunInput(stream.Run{})
	if err != nil {
		return "", err
	}
	said, content := *s, input.Digest()
	said.Input = nil
	raw, err := json.Marshal(said)
	if err != nil {
		return "", fmt.Errorf("schedules: encode: %w", err)
	}
	sum := sha256.Sum256(append(raw, content[:]...))
	return hex.EncodeToString(sum[:]), nil
}
