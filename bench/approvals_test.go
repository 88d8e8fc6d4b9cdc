package main

import "testing"

func TestAnnouncedInterrupt(t *testing.T) {
	t.Parallel()
	got, ok := announced([]byte(`{"type":"CUSTOM","name":"perdure.approval","value":{"id":"int_1","reason":"tool_call"}}`))
	if !ok || got != "int_1" {
		t.Errorf("announced = %q, %v; want int_1", got, ok)
	}
	for _, event := range []string{
		`{"type":"CUSTOM","name":"perdure.toolCalls","value":["call_1"]}`,
		`{"type":"CUSTOM","name":"perdure.approval","value":{}}`,
		`{"type":"CUSTOM","name":"perdure.approval","value":{"id":"int_1`,
	} {
		if got, ok := announced([]byte(event)); ok {
			t.Errorf("announced(%s) = %q, want none", event, got)
		}
	}
}
