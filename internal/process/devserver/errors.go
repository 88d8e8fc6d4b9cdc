package devserver

import "fmt"

// LockedError reports that another process uses the data directory.
type LockedError struct {
	// Dir is the data directory.
	Dir string
	// PID and Command identify the owner. They are 0 and "" if the owner has not written them yet.
	PID     int
	Command string
}

func (lockedErr *LockedError) Error() string {
	if lockedErr.PID == 0 {
		return fmt.Sprintf("data directory %s is in use by another process", lockedErr.Dir)
	}
	return fmt.Sprintf("data directory %s is in use by process %d (%s)", lockedErr.Dir, lockedErr.PID, lockedErr.Command)
}

// DirectoryError reports that a directory cannot be the data directory: it is not writable, belongs
// to another program, or its content is damaged.
type DirectoryError struct {
	// Dir is the data directory.
	Dir string
	// Err is the cause.
	Err error
}

func (e *DirectoryError) Error() string {
	return fmt.Sprintf("data directory %s cannot be used: %v", e.Dir, e.Err)
}

// Unwrap returns Err.
func (e *DirectoryError) Unwrap() error { return e.Err }

// PortError reports that a server cannot listen on its port.
type PortError struct {
	// Server is "Temporal" or "NATS"; Flag is the command-line flag that sets Port.
	Server, Flag string
	// Port is the requested port on 127.0.0.1.
	Port int
	// Err is the listener's error.
	Err error
}

func (e *PortError) Error() string {
	return fmt.Sprintf("%s cannot listen on %s:%d: %v (choose another port with %s)", e.Server, loopback, e.Port, e.Err, e.Flag)
}

// Unwrap returns Err.
func (e *PortError) Unwrap() error { return e.Err }
