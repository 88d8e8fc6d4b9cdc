package stream

import (
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// IsConflict reports whether NATS has refused a conditional write because another writer has created or changed
// the key, or the subject, since it was read. The write may be one of a [jetstream.KeyValue], or a message with
// an expected sequence. The caller reads the value again.
//
// NATS has two codes for it: an unreplicated stream has one, and a replicated stream has both, the second one
// for a write that is on the way to the replicas. The client maps both to ErrKeyExists for Create, and to
// ErrKeyRevisionMismatch for Update, Delete and Purge, but leaves those of messages as they are.
func IsConflict(err error) bool {
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return true
	}
	refusal, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (refusal.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || refusal.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
