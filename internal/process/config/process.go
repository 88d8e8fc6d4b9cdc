package config

// Process is a program that this package configures.
type Process string

// The processes. The values are the names of the binaries or the command.
const (
	API    Process = "api"
	Worker Process = "worker"
	Dev    Process = "perdure dev" // has its own flags and servers
)
