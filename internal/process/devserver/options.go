package devserver

import "log/slog"

// Options says where the servers keep their data and where they listen.
type Options struct {
	// Data is the directory, created when missing. It must be empty or have been
	// written by this package before. Required.
	Data string

	// TemporalPort is the TCP port of Temporal's gRPC frontend on 127.0.0.1.
	// 0 takes any free one.
	TemporalPort int

	// NATSPort is the TCP port of the NATS server on 127.0.0.1. 0 takes any free one.
	NATSPort int

	// Namespace is created on first use, and brought up to date (retention, search
	// attributes) when it exists. Defaults to [DefaultNamespace].
	Namespace string

	// HistoryEvents is how many events a workflow's history may have until Temporal suggests to
	// continue as new. 0 = Temporal's own default, 4,096.
	HistoryEvents int

	// Logger receives what the two servers have to say. Defaults to slog.Default().
	Logger *slog.Logger

	// LogLevel is the least severe level passed to Logger; both servers talk a lot
	// below Warn. Defaults to Warn.
	LogLevel slog.Leveler
}
