// Package watch keeps a process up to date about a part of a key-value bucket, over whatever
// happens to the servers.
//
//	bucket ──what there is──► Loading ──Done──► Copy, replaced at once
//	       ──what changes──────────────Take───► Copy
//
// A watch of NATS ends where its subscription does, and may tell nothing for ever, without an
// error, where the node has died that had its end. So this one looks now and then whether it was
// told what there is, and begins anew if it was not; what there is then replaces what was known.
// Until it is loaded again the copy is as it was: late, never half.
package watch
