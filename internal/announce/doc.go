// Package announce tells apis which tools there are workers for.
//
//	worker ──names of its tools, every 10 s──► bucket ──watch──► api
//
// It decides nothing: an agent whose tools nobody announces is published with a warning, since its worker
// may be on its way, and its runs wait a while for one.
package announce

import "time"

// bucket holds what a worker has under the worker's key.
const bucket = "tools"

// interval is how often a worker says what it has; what it said lasts for three of them.
const (
	interval = 10 * time.Second
	lasting  = 3 * interval
)
