package streamtest

import "go.uber.org/goleak"

// Leaks returns the option of goleak that ignores a leak of nats.go v1.55. Its object store
// publishes an object by a publisher that it takes down afterwards. If the publisher's goroutine
// begins only then, it finds its channel gone and waits for ever
// (jetstream.resetPendingAcksOnReconnect).
func Leaks() goleak.Option {
	return goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")
}
