// Package stuck tells why active runs make no progress: no worker takes their work, or their
// workflow task fails again and again. It stores nothing, and derives all from what Temporal says of
// the threads' workflows and task queues.
//
//	threads ──► task (of the workflow or of a child) that waits ──► pollers of its task queue ──► Stuck
package stuck
