package schedules

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/sdk/client"
)

// This file translates calendars and cron expressions to [client.ScheduleCalendarSpec]. Perdure
// parses them itself instead of sending the text to Temporal, so that the API reports a mistake at
// once and with the field that has it.

// Calendar matches the times that match all of its fields. A field is a list of values, ranges and
// steps as in cron: "9", "9-17", "*/15", "MON-FRI", "1,15". An empty second, minute or hour is 0;
// any other empty field matches every value.
type Calendar struct {
	Second     string `json:"second,omitempty"`
	Minute     string `json:"minute,omitempty"`
	Hour       string `json:"hour,omitempty"`
	DayOfMonth string `json:"dayOfMonth,omitempty"`
	Month      string `json:"month,omitempty"`
	Year       string `json:"year,omitempty"`
	DayOfWeek  string `json:"dayOfWeek,omitempty"` // 0 or 7 is Sunday
}

// unit describes one field of a calendar. names are aliases for the values from low on: names[0] is
// low.
type unit struct {
	name      string
	low, high int
	// without is the text of an empty field.
	without string
	names   []string
}

var (
	second     = unit{"second", 0, 59, "0", nil}
	minute     = unit{"minute", 0, 59, "0", nil}
	hour       = unit{"hour", 0, 23, "0", nil}
	dayOfMonth = unit{"dayOfMonth", 1, 31, "*", nil}
	month      = unit{"month", 1, 12, "*", []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}}
	year       = unit{"year", 2000, 2100, "*", nil}
	dayOfWeek  = unit{"dayOfWeek", 0, 7, "*", []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}}
)

// temporal returns the calendar in Temporal's form. With an error, field names the invalid field.
func (c Calendar) temporal() (out client.ScheduleCalendarSpec, field string, err error) {
	for _, f := range []struct {
		unit unit
		text string
		to   *[]client.ScheduleRange
	}{
		{second, c.Second, &out.Second}, {minute, c.Minute, &out.Minute}, {hour, c.Hour, &out.Hour},
		{dayOfMonth, c.DayOfMonth, &out.DayOfMonth}, {month, c.Month, &out.Month}, {year, c.Year, &out.Year},
		{dayOfWeek, c.DayOfWeek, &out.DayOfWeek},
	} {
		if *f.to, err = f.unit.ranges(f.text); err != nil {
			return out, f.unit.name, err
		}
	}
	out.DayOfWeek = sundays(out.DayOfWeek)
	return out, "", nil
}

// abbreviations are the aliases of cron expressions that cron accepts, in lower case.
var abbreviations = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// cron parses a cron expression of five fields, or one of the abbreviations. If an expression
// restricts both the day of the month and the day of the week, a time must match both: Temporal's
// calendars work like that. crond fires when either matches.
func cron(expression string) (out client.ScheduleCalendarSpec, err error) {
	if whole, ok := abbreviations[strings.ToLower(expression)]; ok {
		expression = whole
	}
	f := strings.Fields(expression)
	if len(f) != 5 {
		return out, errors.New("must have five fields: minute, hour, day of month, month, day of week")
	}
	out, field, err := Calendar{Minute: f[0], Hour: f[1], DayOfMonth: f[2], Month: f[3], DayOfWeek: f[4]}.temporal()
	if err != nil {
		err = fmt.Errorf("%s %w", field, err)
	}
	return out, err
}

// maxTerms bounds the terms of a field (the parts between commas), maxField its bytes.
const (
	maxTerms = 60
	maxField = 300
)

// ranges parses the text of one field; empty text is the unit's default.
func (u unit) ranges(text string) (list []client.ScheduleRange, err error) {
	if text == "" {
		text = u.without
	}
	terms := strings.Split(text, ",")
	if len(text) > maxField || len(terms) > maxTerms {
		return nil, errors.New("is too long")
	}
	for _, term := range terms {
		r, err := u.term(strings.TrimSpace(term))
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// term parses one term of a field: *, a, a-b, and each of these with /step. a/step ends at the
// unit's highest value.
func (u unit) term(text string) (r client.ScheduleRange, err error) {
	span, step, stepped := strings.Cut(text, "/")
	first, last, ranged := strings.Cut(span, "-")
	r.Step = 1
	if stepped {
		if r.Step, err = strconv.Atoi(step); err != nil || r.Step < 1 || r.Step > u.high {
			return r, fmt.Errorf("has the step %.20q, which is not a number from 1 to %d", step, u.high)
		}
	}
	if span == "*" {
		r.Start, r.End = u.low, u.high
		return r, nil
	}
	if r.Start, err = u.value(first); err != nil {
		return r, err
	}
	switch {
	case ranged:
		r.End, err = u.value(last)
	case stepped:
		r.End = u.high
	default:
		r.End = r.Start
	}
	if err == nil && r.End < r.Start {
		err = fmt.Errorf("has the range %.40q, which ends before it begins", span)
	}
	return r, err
}

// value parses a number or a name, in any case, and checks it against the unit's bounds.
func (u unit) value(text string) (int, error) {
	if i := slices.Index(u.names, strings.ToUpper(text)); i >= 0 {
		return u.low + i, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < u.low || n > u.high {
		return 0, fmt.Errorf("has %.20q, which is not a %s from %d to %d", text, u.name, u.low, u.high)
	}
	return n, nil
}

// sundays lists days of the week one by one. In cron both 0 and 7 are Sunday; Temporal accepts only
// 0. A range such as 5-7 would end before it begins if only its end were mapped to 0.
func sundays(ranges []client.ScheduleRange) []client.ScheduleRange {
	var days [7]bool
	for _, r := range ranges {
		for day := r.Start; day <= r.End; day += r.Step {
			days[day%7] = true
		}
	}
	var list []client.ScheduleRange
	for day, named := range days {
		if named {
			list = append(list, client.ScheduleRange{Start: day, End: day, Step: 1})
		}
	}
	return list
}
