// Package quota bounds what the callers of a tenant may use: requests per second (Rates), places of
// an API process (Room), and what exists in the log and in Temporal (Meter). A Table has the bounds.
//
//	request ──Rates──► handler ──Room──► stream, WebSocket
//	                      └─────Meter──► new run, thread, schedule, agent
//
// A caller beyond a bound gets a *RateError, an *ExceededError or ErrFull, and its request has no
// effect. Bounds never stop what was accepted before: a run that has started ends.
package quota
