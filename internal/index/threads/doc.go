// Package threads keeps the index of threads in memory, sorted by time, and pages through it for
// the API.
//
// The bucket belongs to the log (stream/index.go): the writer of a run's first or last record also
// writes the thread's entry. This package only reads it, with one watch per API node; it answers a
// page from memory.
package threads
