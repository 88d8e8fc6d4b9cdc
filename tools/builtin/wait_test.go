package builtin_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/builtin"
)

// TestWait: wait takes a duration with days, a time with an offset, or a local time with its zone.
func TestWait(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	tool := builtin.Wait(time.Now)
	for args, want := range map[string]time.Time{
		`{"for":"3d"}`:                                               {},
		`{"until":"2096-03-04T09:00:00+02:00"}`:                      time.Date(2096, 3, 4, 7, 0, 0, 0, time.UTC),
		`{"until":"2096-07-04 09:00","timezone":"Europe/Berlin"}`:    time.Date(2096, 7, 4, 9, 0, 0, 0, berlin),
		`{"until":"2096-07-04T09:00:30","timezone":"Europe/Berlin"}`: time.Date(2096, 7, 4, 9, 0, 30, 0, berlin),
		`{"until":"2096-07-04","timezone":"UTC"}`:                    time.Date(2096, 7, 4, 0, 0, 0, 0, time.UTC),
	} {
		_, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(args), Asks: true})
		var raised *tools.Raised
		if !errors.As(err, &raised) || raised.Wait == nil {
			t.Errorf("%s: got %v, want a timer", args, err)
			continue
		}
		if !raised.ExpiresAt.Equal(want) || want.IsZero() && raised.ExpiresIn != 72*time.Hour {
			t.Errorf("%s: ends at %s or after %s, want %s", args, raised.ExpiresAt, raised.ExpiresIn, want)
		}
	}
	for args, want := range map[string]string{
		`{}`:                                        "either for or until",
		`{"for":"1h","until":"2096"}`:               "either for or until",
		`{"for":"soon"}`:                            "/for",
		`{"for":"1ms"}`:                             "at least one second",
		`{"until":"2096-07-04 09:00"}`:              "/timezone: is required",
		`{"until":"tomorrow","timezone":"UTC"}`:     "/until",
		`{"until":"2096-07-04","timezone":"Local"}`: "unknown time zone",
		`{"for":"1h","timezone":"UTC"}`:             "only for until",
	} {
		result, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(args), Asks: true})
		if err != nil || !result.IsError || !strings.Contains(result.Content, want) {
			t.Errorf("%s: got %+v, %v, want a failure with %q", args, result, err, want)
		}
	}
}
