package mcptool

// renewal replaces a connection after its secrets have changed: no more calls begin, active calls
// end, the program ends, and starts again with the new secrets. Calls wait meanwhile.
type renewal struct {
	requested chan struct{} // holds at most one request

	// Server.mu guards the fields below it.
	over chan struct{} // closed when calls may begin again; nil = there is no renewal
	idle chan struct{} // closed when no call is active; nil = nobody waits
}

// end lets the calls continue that wait for the renewal. The caller holds Server.mu.
func (r *renewal) end() {
	if r.over != nil {
		close(r.over)
		r.over = nil
	}
}

// callsEnded tells that no call is active. The caller holds Server.mu.
func (r *renewal) callsEnded() {
	if r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}
