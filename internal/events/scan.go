package events

// scan is one read of the kept events with a name, for all waits that registered before it began: so
// many waits need few reads.
type scan struct {
	waits   []*openWait        // guarded by Router.mu until the read begins
	done    chan struct{}      // closed at the end; then what follows is set
	matched map[*Wait][]uint64 // sequences of events
	err     error
	// isAbandoned tells that the caller that read is gone, which is the reason of err.
	isAbandoned bool
}
