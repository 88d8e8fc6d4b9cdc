package api_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// wantEqual fails the test unless got equals want. fact names what is compared. Empty and nil slices are equal.
func wantEqual[T any](t testing.TB, fact string, got, want T) {
	t.Helper()
	if text := difference(fact, got, want); text != "" {
		t.Error(text)
	}
}

// mustEqual is wantEqual for a fact that later statements depend on: it ends the test.
func mustEqual[T any](t testing.TB, fact string, got, want T) {
	t.Helper()
	if text := difference(fact, got, want); text != "" {
		t.Fatal(text)
	}
}

// difference describes how got differs from want; "" = they are equal.
func difference[T any](fact string, got, want T) string {
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	diff := cmp.Diff(want, got, all, cmpopts.EquateEmpty())
	if diff == "" {
		return ""
	}
	switch reflect.ValueOf(got).Kind() {
	case reflect.String:
		return fmt.Sprintf("%s = %q, want %q", fact, any(got), any(want))
	case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64, reflect.Float64:
		return fmt.Sprintf("%s = %v, want %v", fact, got, want)
	}
	return fmt.Sprintf("%s (-want +got):\n%s", fact, diff)
}

// wantStatus fails the test unless the answer has a status. fact names what is compared; the message has
// the body of any other answer.
func (a answer) wantStatus(t testing.TB, fact string, want int) {
	t.Helper()
	if a.status != want {
		t.Errorf("%s = %d, want %d; body: %s", fact, a.status, want, a.body)
	}
}

// mustStatus is wantStatus for an answer that later statements depend on: it ends the test.
func (a answer) mustStatus(t testing.TB, fact string, want int) {
	t.Helper()
	if a.status != want {
		t.Fatalf("%s = %d, want %d; body: %s", fact, a.status, want, a.body)
	}
}
