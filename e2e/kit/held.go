package kit

import (
	"encoding/json"
	"testing"
)

// Held asks to hold the run while something is waited for.
func (in Input) Held() Input {
	in.ForwardedProps = Asks(map[string]any{"hold": true})
	return in
}

// Custom returns the value of a custom event.
func Custom[T any](t *testing.T, e Event, name string) (value T) {
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

func IsCustom(e Event) bool { return e.Type == "CUSTOM" }
