package exact_test

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/internal/exact"
)

// TestObject: an object has the same numbers after it is decoded and encoded.
func TestObject(t *testing.T) {
	t.Parallel()
	const text = `{"id":12345678901234567,"large":100000000000000000000,"name":"a","order":{"id":9007199254740993},"sum":1.0}`
	var object exact.Object
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(object); err != nil || string(got) != text {
		t.Errorf("encoded = %s, %v, want %s", got, err, text)
	}
}
