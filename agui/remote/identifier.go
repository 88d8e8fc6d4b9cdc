package remote

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// threadPrefix begins the UUID of every remote thread: "perd" in hexadecimal.
const threadPrefix = "perd"

// ThreadID returns the remote's ID of a thread: a UUID of version 8 (RFC 9562, section 5.8) that
// begins with 70657264, from a digest of the three IDs. It is a UUID because LangGraph's server
// refuses other IDs. A fork is a thread with its own ID, so it has its own remote thread. The ID is
// no secret, and gives no access: anybody who knows the three IDs can derive it.
func ThreadID(tenant, agent, thread string) string {
	sum := digest(tenant, agent, thread)
	var id [16]byte
	copy(id[:], threadPrefix)
	copy(id[len(threadPrefix):], sum)
	id[6] = id[6]&0x0f | 0x80 // version 8
	id[8] = id[8]&0x3f | 0x80 // variant of RFC 9562
	s := hex.EncodeToString(id[:])
	return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
}

// digest returns the SHA-256 of texts. Their lengths separate them, so other texts with the same
// concatenation have another digest.
func digest(texts ...string) []byte {
	hash := sha256.New()
	for _, s := range texts {
		_ = binary.Write(hash, binary.BigEndian, uint64(len(s))) // a hash does not fail
		_, _ = hash.Write([]byte(s))
	}
	return hash.Sum(nil)
}

const (
	separator = ":" // not part of the name of an agent
	runDigits = 16  // hexadecimal digits of a run's digest
	// maxIDPart bounds the remote's ID in an own ID, in bytes: own IDs go to histories.
	maxIDPart = 96
	// digestPrefix and idDigits make the form of a remote's ID that cannot be a part of an own ID.
	digestPrefix = "sha256-"
	idDigits     = 32
)

// NewID returns Perdure's ID of a message, tool call or interrupt that a remote agent has begun in a
// run: agent, digest of the run, and the remote's ID. run is the ID under which the remote was asked
// for the run. It stays the same when the run is repeated. A remote's ID of more than 96 bytes, or with
// other characters than visible ASCII, is replaced by its digest, which the remote does not know.
func NewID(agent, run, remoteID string) string {
	return agent + separator + hex.EncodeToString(digest(run))[:runDigits] + separator + idPart(remoteID)
}

// idPart returns a remote's ID in the form in which it is part of an own ID.
func idPart(remoteID string) string {
	isVisible := func(r rune) bool { return r > ' ' && r <= '~' }
	if len(remoteID) <= maxIDPart && !strings.ContainsFunc(remoteID, func(r rune) bool { return !isVisible(r) }) {
		return remoteID
	}
	return digestPrefix + hex.EncodeToString(digest(remoteID))[:idDigits]
}

// IsNewID reports whether an ID has the form of those of NewID, for any agent.
func IsNewID(id string) bool {
	agent, _, _ := strings.Cut(id, separator)
	return OriginalID(agent, id) != id
}

// OriginalID returns the remote's ID of an item for which agent is responsible. It returns any other
// ID, such as that of a user's message, unchanged.
func OriginalID(agent, id string) string {
	rest, ok := strings.CutPrefix(id, agent+separator)
	if !ok || len(rest) <= runDigits || rest[runDigits:runDigits+1] != separator || !isHex(rest[:runDigits]) {
		return id
	}
	return rest[runDigits+1:]
}

// isHex reports whether s has only the digits of hex.EncodeToString.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
