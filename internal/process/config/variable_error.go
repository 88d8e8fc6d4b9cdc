package config

// VariableError is an invalid value of a variable.
type VariableError struct {
	Name string
	Err  error
}

func (e *VariableError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *VariableError) Unwrap() error { return e.Err }
