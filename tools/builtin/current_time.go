package builtin

import (
	"context"
	"fmt"
	"time"
	_ "time/tzdata" // for containers without a time zone database

	"github.com/perdure/perdure/tools"
)

// timeQuery is the type of the arguments of current_time.
type timeQuery struct {
	Timezone string `json:"timezone,omitempty" jsonschema:"IANA time zone such as Europe/Berlin; UTC if left out"`
}

// timeAnswer is the type of the result of current_time.
type timeAnswer struct {
	Time     string `json:"time"` // RFC 3339, to the second
	Weekday  string `json:"weekday"`
	Timezone string `json:"timezone"`
}

// CurrentTime returns the tool current_time, which returns the current time in a time zone that the
// model chooses. now is the clock.
func CurrentTime(now func() time.Time) tools.Tool {
	tell := func(_ context.Context, query timeQuery) (timeAnswer, error) {
		zone, err := loadZone(query.Timezone)
		if err != nil {
			return timeAnswer{}, err
		}
		t := now().In(zone)
		return timeAnswer{Time: t.Format(time.RFC3339), Weekday: t.Weekday().String(), Timezone: zone.String()}, nil
	}
	return tools.Func("current_time", "Tells the current date, time and weekday, in UTC or in a given time zone.",
		tell, tools.Idempotent(), tools.Timeout(5*time.Second))
}

// loadZone returns the time zone with an IANA name; "" is UTC. Its error is for the model.
func loadZone(name string) (*time.Location, error) {
	// time.LoadLocation accepts Local as the zone of the worker's machine, which is meaningless to
	// a model.
	if name == "Local" {
		return nil, unknownZone(name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, unknownZone(name)
	}
	return zone, nil
}

// unknownZone returns the error of an invalid time zone.
func unknownZone(name string) error {
	return fmt.Errorf("/timezone: unknown time zone %.64q; expected an IANA name such as Europe/Berlin or America/New_York", name)
}
