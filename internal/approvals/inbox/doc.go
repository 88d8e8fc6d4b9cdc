// Package inbox is the index of approvals: which tool calls wait for a person, over all threads of
// a tenant, and what has happened to them lately. It is a cache of the log, in one bucket:
//
//	pending.<tenant>.<time>.<approval>   an approval that nobody has decided about; never ages out
//	event.<tenant>.<event>               something that happened to one; kept for a week
//
//	worker ──Put, Settle, Record──► bucket ──watch──► api: Index, sorted by time ──► lists
//	                                       ──read behind a cursor──► Feed ──► whoever follows
//
// It decides nothing: a decision is judged by the thread's workflow. What the workflow tells may
// come more than once, and late: each write names the time of what it tells, and an approval that
// is settled stays so. The bucket's revisions are the cursors of the feed; a pending key is always
// written before the event that tells of it, so that a list and the events behind it leave nothing
// out.
package inbox
