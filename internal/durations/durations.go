// Package durations parses durations as definitions and tools have them, those of Go with days, and waits for
// them.
package durations

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// withDays matches a duration that begins with days, such as 3d or 1d12h.
var withDays = regexp.MustCompile(`^([0-9]{1,5})d(.*)$`)

// Parse parses a duration such as 90s, 36h, 3d or 1d12h. A day has 24 hours.
func Parse(text string) (time.Duration, error) {
	parts := withDays.FindStringSubmatch(text)
	if parts == nil {
		return parseRest(text, text)
	}
	days, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number of days", parts[1])
	}
	d := time.Duration(days) * 24 * time.Hour
	if parts[2] == "" {
		return d, nil
	}
	rest, err := parseRest(parts[2], text)
	return d + rest, err
}

// parseRest parses what follows the days; text is all of it, for the error.
func parseRest(rest, text string) (time.Duration, error) {
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a duration such as 90s, 36h or 3d", text)
	}
	return d, nil
}

// Canonical returns the same text for equal durations, such as 336h0m0s for 14d. A text that is not a
// duration is returned unchanged.
func Canonical(text string) string {
	d, err := Parse(text)
	if err != nil {
		return text
	}
	return d.String()
}
