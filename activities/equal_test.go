package activities_test

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
