package streamtest

import "go.uber.org/goleak"

// Leaks returns the goroutines that are not ours to end. nats.go v1.55 publishes what goes into an
// object store by a publisher that it takes down when that is done; if the publisher's goroutine
// begins only then, it finds its channel gone and waits for ever
// (jetstream.resetPendingAcksOnReconnect).
func Leaks() goleak.Option {
	return goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")
}
