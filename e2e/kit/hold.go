package kit

import (
	"encoding/json"
	"testing"
)

// Hold returns the input with the option hold: the run stays open while it waits.
func (in Input) Hold() Input {
	in.ForwardedProps = PerdureProps(map[string]any{"hold": true})
	return in
}

// CustomValue returns the value of a custom event.
func CustomValue[T any](t *testing.T, e Event, name string) (value T) {
	t.Helper()
	if e.Type != "CUSTOM" || e.Member("name") != name {
		t.Fatalf("got %s, want CUSTOM %s", e.Data, name)
	}
	var members struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(e.Data, &members); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(members.Value, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// IsCustom reports whether an event is a custom event.
func IsCustom(e Event) bool { return e.Type == "CUSTOM" }
