package devserver

import (
	"log/slog"
	"time"
)

// Options configures the servers. The zero value of each field but Data is valid.
type Options struct {
	// Data is the data directory. Start creates it if it is missing. It must be empty, or a
	// directory of this package. Required.
	Data string

	// TemporalPort is the TCP port of Temporal's gRPC frontend on 127.0.0.1. 0 = any free port.
	TemporalPort int

	// NATSPort is the TCP port of the NATS server on 127.0.0.1. 0 = any free port.
	NATSPort int

	// Namespace is the Temporal namespace. Start creates it, or updates its retention and search
	// attributes. "" = [DefaultNamespace].
	Namespace string

	// HistoryEvents is the number of events in a history at which Temporal suggests to continue as
	// new. 0 = Temporal's default, 4,096.
	HistoryEvents int

	// ReuseInterval is Temporal's history.workflowIdReuseMinimalInterval: the first task of an
	// execution that continues a younger one as new waits until that one is as old. 0 = it does not
	// wait. Temporal's default is a second.
	ReuseInterval time.Duration

	// WorkflowCache bounds the workflows in the memory of the workers of this process. Temporal's SDK
	// has one cache for all workers, and the first ones are those of the server. 0 = the SDK's
	// default, 10,000.
	WorkflowCache int

	// Logger receives the log lines of both servers. nil = slog.Default().
	Logger *slog.Logger

	// LogLevel is the lowest level that is passed to Logger. Both servers log a lot below Warn. nil
	// = Warn.
	LogLevel slog.Leveler
}
