package events

// scan is one read of the kept events with a name, for all waits that registered before it began: so
// many waits need few reads.
type scan struct {
	waits   []*openWait   // guarded by Router.mu until the read begins
	done    chan struct{} // closed at the end; then matched and err are set
	matched map[*Wait][]*Event
	err     error
}
