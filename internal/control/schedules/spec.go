package schedules

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones are known where the system has none

	"go.temporal.io/sdk/client"
)

// Spec is when a schedule fires: at every time that any of its members names.
type Spec struct {
	// Cron has expressions of five fields: minute, hour, day of month, month, day of week; or
	// @hourly and the like.
	Cron      []string   `json:"cron,omitempty"`
	Calendars []Calendar `json:"calendars,omitempty"`
	Intervals []Interval `json:"intervals,omitempty"`
	// StartAt and EndAt bound the times, as RFC 3339.
	StartAt string `json:"startAt,omitempty"`
	EndAt   string `json:"endAt,omitempty"`
	// TimeZone is by whose clock Cron and Calendars are meant.
	TimeZone string `json:"timeZone"`
	// Jitter spreads the times at random over so long.
	Jitter string `json:"jitter,omitempty"`
}

// Interval names times by what is between them, counted from 1970.
type Interval struct {
	Every  string `json:"every"`
	Offset string `json:"offset,omitempty"`
}

// maxTimes bounds each list.
const maxTimes = 20

// Temporal returns the spec as Temporal has it. Errors: *FieldError.
func (s *Spec) Temporal() (out client.ScheduleSpec, err error) {
	if len(s.Cron)+len(s.Calendars)+len(s.Intervals) == 0 {
		return out, &FieldError{"", "must say when to run: cron, calendars or intervals"}
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

func (s *Spec) intervals() (list []client.ScheduleIntervalSpec, err error) {
	for i, interval := range s.Intervals {
		var in client.ScheduleIntervalSpec
		at := fmt.Sprintf("/intervals/%d", i)
		if in.Every, err = duration(at+"/every", interval.Every); err != nil {
			return nil, err
		}
		if interval.Offset != "" {
			if in.Offset, err = duration(at+"/offset", interval.Offset); err != nil {
				return nil, err
			}
		}
		switch {
		case in.Every < time.Second || in.Every%time.Second != 0:
			return nil, &FieldError{at + "/every", "must be some seconds, at least one"}
		case in.Offset >= in.Every || in.Offset%time.Second != 0:
			return nil, &FieldError{at + "/offset", "must be some seconds, less than every"}
		}
		list = append(list, in)
	}
	return list, nil
}

// zone checks the time zone. That of this machine is nobody else's.
func (s *Spec) zone() (string, error) {
	if _, err := time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "" || s.TimeZone == "Local" {
		return "", &FieldError{"/timeZone", "must be a name of the IANA time zone database, such as Europe/Berlin"}
	}
	return s.TimeZone, nil
}

func duration(at, text string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || d < 0 {
		return 0, &FieldError{at, "must be a duration, such as 90s or 1h30m"}
	}
	return d, nil
}

// parseTime reads a time; none is zero.
func parseTime(at, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, &FieldError{at, "must be a time, such as 2030-01-31T09:00:00Z"}
	}
	return t, nil
}
