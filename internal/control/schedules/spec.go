package schedules

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones are known where the system has none

	"go.temporal.io/sdk/client"
)

// Spec is when a schedule fires: at every time that at least one of Cron, Calendars and Intervals
// matches. Its JSON members are members of the schedule.
type Spec struct {
	// Cron has expressions of five fields (minute, hour, day of month, month, day of week), or
	// abbreviations such as @hourly.
	Cron      []string   `json:"cron,omitempty"`
	Calendars []Calendar `json:"calendars,omitempty"`
	Intervals []Interval `json:"intervals,omitempty"`
	// StartAt and EndAt bound the times, in RFC 3339; "" = no bound.
	StartAt string `json:"startAt,omitempty"`
	EndAt   string `json:"endAt,omitempty"`
	// TimeZone is the IANA time zone of Cron and Calendars. Parse sets UTC by default.
	TimeZone string `json:"timeZone"`
	// Jitter delays each firing by a random duration of up to this one; "" = none.
	Jitter string `json:"jitter,omitempty"`
}

// Interval matches every multiple of Every since the Unix epoch, plus Offset. Both are durations in
// Go's syntax, of whole seconds. Offset is less than Every; "" = 0.
type Interval struct {
	Every  string `json:"every"`
	Offset string `json:"offset,omitempty"`
}

// maxTimes bounds the entries of each of Cron, Calendars and Intervals.
const maxTimes = 20

// Temporal validates the specification and returns it in Temporal's form. Errors: *FieldError.
func (s *Spec) Temporal() (out client.ScheduleSpec, err error) {
	if len(s.Cron)+len(s.Calendars)+len(s.Intervals) == 0 {
		return out, &FieldError{"", "must have cron, calendars or intervals"}
	}
	for _, list := range []struct {
		at     string
		length int
	}{{"/cron", len(s.Cron)}, {"/calendars", len(s.Calendars)}, {"/intervals", len(s.Intervals)}} {
		if list.length > maxTimes {
			return out, &FieldError{list.at, fmt.Sprintf("may have at most %d entries", maxTimes)}
		}
	}
	if out.Calendars, err = s.calendars(); err != nil {
		return out, err
	}
	if out.Intervals, err = s.intervals(); err != nil {
		return out, err
	}
	if out.TimeZoneName, err = s.zone(); err != nil {
		return out, err
	}
	if out.StartAt, err = parseTime("/startAt", s.StartAt); err != nil {
		return out, err
	}
	if out.EndAt, err = parseTime("/endAt", s.EndAt); err != nil {
		return out, err
	}
	if !out.EndAt.IsZero() && !out.EndAt.After(out.StartAt) {
		return out, &FieldError{"/endAt", "must be after startAt"}
	}
	if s.Jitter != "" {
		out.Jitter, err = duration("/jitter", s.Jitter)
	}
	return out, err
}

// calendars returns Cron and Calendars as Temporal's calendars. The comment of a calendar is the
// cron expression that it comes from.
func (s *Spec) calendars() (list []client.ScheduleCalendarSpec, err error) {
	for i, expression := range s.Cron {
		c, err := cron(expression)
		if err != nil {
			return nil, &FieldError{fmt.Sprintf("/cron/%d", i), err.Error()}
		}
		c.Comment = expression
		list = append(list, c)
	}
	for i, calendar := range s.Calendars {
		c, field, err := calendar.temporal()
		if err != nil {
			return nil, &FieldError{fmt.Sprintf("/calendars/%d/%s", i, field), err.Error()}
		}
		list = append(list, c)
	}
	return list, nil
}

// intervals returns Intervals in Temporal's form, which counts in whole seconds.
func (s *Spec) intervals() (list []client.ScheduleIntervalSpec, err error) {
	for i, interval := range s.Intervals {
		var in client.ScheduleIntervalSpec
		pointer := fmt.Sprintf("/intervals/%d", i)
		if in.Every, err = duration(pointer+"/every", interval.Every); err != nil {
			return nil, err
		}
		if interval.Offset != "" {
			if in.Offset, err = duration(pointer+"/offset", interval.Offset); err != nil {
				return nil, err
			}
		}
		switch {
		case in.Every < time.Second || in.Every%time.Second != 0:
			return nil, &FieldError{pointer + "/every", "must be a whole number of seconds, at least one"}
		case in.Offset >= in.Every || in.Offset%time.Second != 0:
			return nil, &FieldError{pointer + "/offset", "must be a whole number of seconds, less than every"}
		}
		list = append(list, in)
	}
	return list, nil
}

// zone checks the time zone. "Local" is refused: it means another zone on each machine.
func (s *Spec) zone() (string, error) {
	if _, err := time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "" || s.TimeZone == "Local" {
		return "", &FieldError{"/timeZone", "must be a name of the IANA time zone database, such as Europe/Berlin"}
	}
	return s.TimeZone, nil
}

// duration parses a duration of at least 0; pointer is the JSON pointer for the error.
func duration(pointer, text string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || d < 0 {
		return 0, &FieldError{pointer, "must be a duration, such as 90s or 1h30m"}
	}
	return d, nil
}

// parseTime parses a time in RFC 3339; "" is the zero time.
func parseTime(pointer, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, &FieldError{pointer, "must be a time, such as 2030-01-31T09:00:00Z"}
	}
	return t, nil
}
