package schedules

import "fmt"

// FieldError says what is wrong with a schedule, and where, as a JSON pointer.
type FieldError struct {
	Pointer, Detail string
}

func (e *FieldError) Error() string { return fmt.Sprintf("schedules: %s %s", e.Pointer, e.Detail) }
