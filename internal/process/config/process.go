package config

// Process is a program that this package configures.
type Process string

// The processes. The values are the names of the binaries, or of the command.
const (
	API    Process = "api"
	Worker Process = "worker"
	// Dev has flags of its own, and servers of its own instead of addresses.
	Dev Process = "perdure dev"
)
