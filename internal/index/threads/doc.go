// Package threads keeps the index of threads in memory, sorted, and pages through it.
//
// The bucket is the log's (stream/index.go): whoever writes the first or the last record of a run
// writes its entry. Here it is read, by one watch for each node; a page is answered from memory.
package threads
