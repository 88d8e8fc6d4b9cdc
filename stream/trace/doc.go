// Package trace tells how a run came about: the turns, model calls, tool calls, steps, subagents and
// waits of a run as a tree of spans with times, and every attempt, also those that readers of events
// are not shown.
//
// A trace is a fold over the records of a run, like a snapshot (package snapshot). It stores
// nothing: all facts are in the records that the run writes anyway, and the times are those of the
// records. Only an attempt that fails writes a record for the trace (stream.Attempt.ReportFailure).
//
//	records of a run ──► Fold.Add ──► Fold.Trace      all spans
//	                                  Fold.Changed    the spans that changed since the last call
package trace
