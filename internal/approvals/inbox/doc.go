// Package inbox is the index of the interrupts that approvers decide (approvals, questions and
// limits), over all threads of a tenant, with their recent events. It is a cache of the log, in one
// key-value bucket:
//
//	pending.<tenant>.<time>.<approval>   an open interrupt; no TTL
//	event.<tenant>.<event>               an event of an interrupt; kept for a week
//	decided.<tenant>.<time>.<approval>   a decided interrupt; kept for 30 days
//
//	worker ──Put, Settle, Archive, Record──► bucket ──watch──► API: Index, sorted ──► lists
//	                                                ──read after a cursor──► Feed
//
// The inbox decides nothing: the thread's workflow does. The workflow's notifications may arrive
// more than once, and late. So each write has the time of its event, and a settled interrupt stays
// settled.
//
// The revisions of the bucket are the cursors of the feed. A worker writes the pending key of an
// interrupt before the event about it. So a list together with the events after its cursor misses
// nothing.
package inbox
