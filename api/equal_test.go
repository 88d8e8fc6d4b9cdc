package api_test

import (
	"testing"

	"github.com/perdure/perdure/internal/equal"
)

// wantEqual fails the test unless got equals want. fact names what is compared.
func wantEqual[T any](t testing.TB, fact string, got, want T) {
	t.Helper()
	if text := equal.Difference(fact, got, want); text != "" {
		t.Error(text)
	}
}

// mustEqual is wantEqual for a fact that later statements depend on: it ends the test.
func mustEqual[T any](t testing.TB, fact string, got, want T) {
	t.Helper()
	if text := equal.Difference(fact, got, want); text != "" {
		t.Fatal(text)
	}
}

// wantStatus fails the test unless the answer has a status. fact names what is compared; the
// message has the body of any other answer.
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
