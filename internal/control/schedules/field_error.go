package schedules

import "fmt"

// FieldError reports an invalid member of a schedule. Pointer is a JSON pointer (RFC 6901) into the
// schedule's JSON; "" is the schedule as a whole. Detail is a predicate, such as "must be a
// duration": the API shows both to the client.
type FieldError struct {
	Pointer, Detail string
}

func (e *FieldError) Error() string { return fmt.Sprintf("schedules: %s %s", e.Pointer, e.Detail) }
