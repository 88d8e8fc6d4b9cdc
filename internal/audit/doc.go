// Package audit has the entries of the audit log, and the chain that they form: an append-only record
// of who did what, to what, from where, with which outcome. It is separate from the threads, and
// survives their deletion. It has IDs and names, never content.
//
// The entries of a chain are numbered from 1 without gaps, and each one has the SHA-256 digest of the
// stored bytes of the entry before it. So a change, a removal or an insertion breaks the chain, unless
// every later entry is replaced as well; a digest that is kept elsewhere shows that too. Readers keep
// the bytes of entries as they are.
package audit
