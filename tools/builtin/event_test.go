package builtin_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/builtin"
)

// TestEventKeepsNumbers: the event that a call waits for has the numbers of the arguments, also above 2^53.
func TestEventKeepsNumbers(t *testing.T) {
	t.Parallel()
	const match = `{"id":12345678901234567,"large":100000000000000000000}`
	_, err := builtin.Event().Call(t.Context(), tools.Call{Arguments: json.RawMessage(`{"name":"paid","match":` + match + `}`), Asks: true})
	raised, ok := errors.AsType[*tools.Raised](err)
	if !ok {
		t.Fatalf("error = %v, want a wait", err)
	}
	if got, err := json.Marshal(raised.Wait.Event.Match); err != nil || string(got) != match {
		t.Errorf("match = %s, %v, want %s", got, err, match)
	}
}
