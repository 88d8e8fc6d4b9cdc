// Package watch keeps a copy of some keys of a key-value bucket in memory, and keeps it current
// through failures of NATS servers.
//
//	bucket ──present values──► Loading ──Done──► Copy, replaced at once
//	       ──changes─────────────Take──────────► Copy
//
// A watch of nats.go is an ordered consumer. It ends with its subscription, and may stay silent
// forever, without an error, if the node with its consumer has died. So Watch compares its revision
// with the bucket's at intervals, and begins again if it is behind. The new present values replace
// the copy as a whole: until then the copy has an earlier state, but never a mixture.
package watch
