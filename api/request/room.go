package request

import "sync/atomic"

// freeBytes is the part of every answer, and of every body, that needs no room on the node, in
// bytes. So a node without room still answers small requests and takes commands.
const freeBytes = 64 << 10

// room is a number of bytes that the requests of a node share. It is safe for concurrent use.
type room struct {
	max   int64
	taken atomic.Int64
}

// newRoom returns a room of maxBytes bytes.
func newRoom(maxBytes int64) *room { return &room{max: maxBytes} }

// share is the part of a room that one request occupies. One goroutine uses it, and calls release at
// the end.
type share struct {
	room  *room
	bytes int64
}

// grow ensures that the share suffices for the given number of bytes, of which the first freeBytes
// need no room. It does not wait: false = the room has not enough bytes left.
func (s *share) grow(bytes int) bool {
	more := int64(bytes) - freeBytes - s.bytes
	if more <= 0 {
		return true
	}
	if s.room.taken.Add(more) > s.room.max {
		s.room.taken.Add(-more)
		return false
	}
	s.bytes += more
	return true
}

// release returns the share to the room. A later release has no effect.
func (s *share) release() {
	s.room.taken.Add(-s.bytes)
	s.bytes = 0
}
