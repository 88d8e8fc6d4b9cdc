package config

// VariableError reports an invalid value of a variable, or a combination that is invalid because of
// it. Err describes a valid value, and contains no secret.
type VariableError struct {
	Name string
	Err  error
}

func (e *VariableError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *VariableError) Unwrap() error { return e.Err }
