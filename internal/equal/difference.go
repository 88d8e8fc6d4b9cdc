// Package equal compares values in tests, and describes how they differ.
package equal

import (
	"fmt"
	"reflect"

	"github.com/google/go-cmp/cmp"
)

// Difference describes how got differs from want; "" = they are equal. fact names what is compared.
// Unexported fields count.
func Difference[T any](fact string, got, want T) string {
	diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true }))
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
