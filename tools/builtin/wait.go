package builtin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/durations"
	"github.com/perdure/perdure/tools"
)

// waitArguments is the type of the arguments of wait. Exactly one of For and Until is set.
type waitArguments struct {
	For      string `json:"for,omitempty" jsonschema:"how long to wait, such as 90m, 36h or 3d"`
	Until    string `json:"until,omitempty" jsonschema:"when to continue, such as 2026-05-04T09:00:00+02:00; without an offset, such as 2026-05-04 09:00 or 2026-05-04, timezone is required"`
	Timezone string `json:"timezone,omitempty" jsonschema:"IANA time zone of until, such as Europe/Berlin"`
}

// waited is the type of the result of wait.
type waited struct {
	// Time is when the run continued, in RFC 3339 and UTC.
	Time string `json:"time"`
	// Early tells that a caller continued the run before its time.
	Early bool `json:"early"`
}

// Wait returns the tool wait, with which an agent waits for a time. The run waits without using
// resources. now is the clock.
func Wait(now func() time.Time) tools.Tool {
	wait := func(ctx context.Context, in waitArguments) (waited, error) {
		early, err := waitFor(ctx, in)
		return waited{Time: now().UTC().Format(time.RFC3339), Early: early}, err
	}
	return tools.Func("wait", "Waits until a time or for a duration, then continues. Use it to come back to something later, for example to remind the user.",
		wait, tools.Idempotent())
}

// waitFor waits as the arguments say. Its errors are for the model.
func waitFor(ctx context.Context, in waitArguments) (early bool, err error) {
	switch {
	case (in.For == "") == (in.Until == ""):
		return false, errors.New("set either for or until")
	case in.For != "" && in.Timezone != "":
		return false, errors.New("/timezone: is only for until")
	case in.For != "":
		d, err := durations.Parse(in.For)
		if err == nil && d < time.Second {
			err = errors.New("must be at least one second")
		}
		if err != nil {
			return false, fmt.Errorf("/for: %w", err)
		}
		return tools.Sleep(ctx, d)
	}
	until, err := parseUntil(in.Until, in.Timezone)
	if err != nil {
		return false, err
	}
	return tools.SleepUntil(ctx, until)
}

// localTimes are the forms of a time without an offset.
var localTimes = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// parseUntil parses a time. A time with an offset needs no zone, and is shown in zone if there is one.
func parseUntil(text, timezone string) (time.Time, error) {
	zone, err := loadZone(timezone)
	if err != nil {
		return time.Time{}, err
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		if timezone != "" {
			t = t.In(zone)
		}
		return t, nil
	}
	for _, form := range localTimes {
		t, err := time.ParseInLocation(form, text, zone)
		switch {
		case err != nil:
			continue
		case timezone == "":
			return time.Time{}, errors.New("/timezone: is required, because until has no offset such as Z or +02:00")
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("/until: %.40q is not a time such as 2026-05-04T09:00:00+02:00, 2026-05-04 09:00 or 2026-05-04", text)
}
