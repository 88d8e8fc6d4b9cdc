package schedules

import (
	"time"

	"go.temporal.io/sdk/client"
)

// TimesPerHour returns how often the schedule fires in an hour at most, as far as the hour's
// seconds and minutes tell; at least 1 for each of Cron, Calendars and Intervals. Times of several
// of them that are equal count several times. The specification is valid.
func (s *Spec) TimesPerHour() int64 {
	spec, err := s.Temporal()
	if err != nil {
		return 0
	}
	var n int64
	for _, calendar := range spec.Calendars {
		n += values(calendar.Second) * values(calendar.Minute)
	}
	for _, interval := range spec.Intervals {
		n += int64((time.Hour + interval.Every - 1) / interval.Every)
	}
	return n
}

// values returns how many seconds of a minute, or minutes of an hour, ranges match.
func values(ranges []client.ScheduleRange) (n int64) {
	var matches [60]bool
	for _, r := range ranges {
		for v := r.Start; v <= r.End; v += r.Step {
			matches[v] = true
		}
	}
	for _, match := range matches {
		if match {
			n++
		}
	}
	return n
}
