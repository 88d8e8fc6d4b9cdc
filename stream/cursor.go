package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// This file has cursors. Every SSE event of a client has one as its id, and the client sends the
// last one back (Last-Event-ID) to continue on any API node. Package view makes cursors; the log
// only parses and checks them.

// Errors of cursors.
var (
	// ErrInvalidCursor tells that a text is not a cursor.
	ErrInvalidCursor = errors.New("stream: invalid cursor")
	// ErrLogReplaced tells that a cursor belongs to another log: its epoch differs.
	ErrLogReplaced = errors.New("stream: the cursor belongs to another log")
)

// Generation is the generation of AG-UI (protocol generation) that a reader understands.
type Generation string

const (
	// Generation1 is AG-UI 1.x.
	Generation1 Generation = "1"
	// Generation0 is the generation before AG-UI 1.0.
	Generation0 Generation = "0"
)

// Position is a place between two events: after the Index-th event, from 0, of those that a reader
// may be shown of the record Seq. The zero position is before all events.
type Position struct {
	Seq   uint64
	Index int
}

// MaxIndex is the index of a position after every event of a record.
const MaxIndex = 1<<20 - 1

// Before reports whether p comes before q in the log.
func (p Position) Before(q Position) bool {
	return p.Seq < q.Seq || p.Seq == q.Seq && p.Index < q.Index
}

// Cursor is the position of a reader, and what the server has to know about the reader to continue
// there. Its text is opaque to clients, and texts sort in the order of the log. The zero cursor
// belongs to events after which a reader cannot continue.
type Cursor struct {
	Position
	Generation Generation
	Epoch      string
	// Spectator tells that the reader is a spectator: it did not send the input of the run.
	Spectator bool
	// Heal tells that a full snapshot has to precede the run's last event, for clients that store
	// and replay events.
	Heal bool
	// ShownParts tell which events were hidden from the reader of attempts that are superseded
	// after this position, the earliest supersession first. Their retractions depend on it.
	ShownParts []ShownPart
}

// The letters of a cursor, between position and generation.
const (
	letterSpectator = "f"
	letterHeal      = "h"
)

// IsZero reports whether the cursor is the zero cursor.
func (c Cursor) IsZero() bool { return c.Position == Position{} && c.Generation == "" && c.Epoch == "" }

// String returns the cursor's text: position, letters, generation and epoch, and then the ShownPart
// entries. The position comes first and has a fixed width, so that texts sort. The zero cursor's
// text is empty.
func (c Cursor) String() string {
	if c.IsZero() {
		return ""
	}
	text := make([]byte, 0, 64) // without fmt: the hot path of every event of every reader
	text = append(c.Position.append(text), '-')
	if c.Spectator {
		text = append(text, letterSpectator...)
	}
	if c.Heal {
		text = append(text, letterHeal...)
	}
	text = append(append(text, c.Generation...), c.Epoch...)
	for _, u := range c.ShownParts {
		text = appendHex(u.Shown.append(append(text, '-')), u.SupersededAt, seqDigits)
	}
	return string(text)
}

// Digits of a position's two parts.
const (
	seqDigits   = 12
	indexDigits = 5
)

// append appends the position as hexadecimal digits of fixed width.
func (p Position) append(text []byte) []byte {
	return appendHex(appendHex(text, p.Seq, seqDigits), uint64(p.Index), indexDigits) //nolint:gosec // never negative
}

// appendHex appends the last digits of a number, in hexadecimal.
func appendHex(text []byte, n uint64, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		text = append(text, "0123456789abcdef"[n>>shift&0xf])
	}
	return text
}

// decodePosition is the inverse of Position.append.
func decodePosition(s string) (Position, error) {
	if len(s) != seqDigits+indexDigits {
		return Position{}, ErrInvalidCursor
	}
	seq, err := strconv.ParseUint(s[:seqDigits], 16, 4*seqDigits)
	if err != nil {
		return Position{}, fmt.Errorf("%w: %q", ErrInvalidCursor, s)
	}
	index, err := strconv.ParseUint(s[seqDigits:], 16, 4*indexDigits)
	if err != nil {
		return Position{}, fmt.Errorf("%w: %q", ErrInvalidCursor, s)
	}
	return Position{Seq: seq, Index: int(index)}, nil
}

// decodeShownPart decodes one ShownPart of a cursor's text.
func decodeShownPart(s string) (ShownPart, error) {
	if len(s) != 2*seqDigits+indexDigits {
		return ShownPart{}, ErrInvalidCursor
	}
	shown, err := decodePosition(s[:seqDigits+indexDigits])
	if err != nil {
		return ShownPart{}, err
	}
	supersededAt, err := strconv.ParseUint(s[seqDigits+indexDigits:], 16, 4*seqDigits)
	if err != nil {
		return ShownPart{}, fmt.Errorf("%w: %q", ErrInvalidCursor, s)
	}
	return ShownPart{Shown: shown, SupersededAt: supersededAt}, nil
}

// CursorAt returns the cursor after a record, for a reader of the current generation.
func (l *Log) CursorAt(seq uint64) Cursor { return l.CursorOf(Position{Seq: seq}) }

// CursorOf returns the cursor at a position, for a reader of the current generation.
func (l *Log) CursorOf(p Position) Cursor {
	return Cursor{Position: p, Generation: Generation1, Epoch: l.epoch}
}

// ParseCursor reads a cursor of this log. The error is ErrInvalidCursor or ErrLogReplaced. The text
// comes from a client, so its entries are checked for the order that String writes. ParseCursor
// does not read the log (see Check).
func (l *Log) ParseCursor(text string) (Cursor, error) {
	parts := strings.Split(text, "-")
	if len(parts) < 2 || len(parts) > 2+MaxShownParts {
		return Cursor{}, fmt.Errorf("%w: %.40q", ErrInvalidCursor, text)
	}
	position, err := decodePosition(parts[0])
	if err != nil {
		return Cursor{}, err
	}
	c := Cursor{Position: position}
	suffix, isSpectator := strings.CutPrefix(parts[1], letterSpectator)
	suffix, heal := strings.CutPrefix(suffix, letterHeal)
	if len(suffix) < 2 {
		return Cursor{}, fmt.Errorf("%w: %.40q", ErrInvalidCursor, text)
	}
	c.Spectator, c.Heal, c.Generation, c.Epoch = isSpectator, heal, Generation(suffix[:1]), suffix[1:]
	if c.Generation != Generation0 && c.Generation != Generation1 {
		return Cursor{}, fmt.Errorf("%w: generation %q", ErrInvalidCursor, c.Generation)
	}
	for _, part := range parts[2:] {
		u, err := decodeShownPart(part)
		if err != nil {
			return Cursor{}, err
		}
		if n := len(c.ShownParts); !u.Shown.Before(position) || u.SupersededAt < position.Seq || n > 0 && u.SupersededAt <= c.ShownParts[n-1].SupersededAt {
			return Cursor{}, fmt.Errorf("%w: %.60q", ErrInvalidCursor, text)
		}
		c.ShownParts = append(c.ShownParts, u)
	}
	if c.Epoch != l.epoch {
		return Cursor{}, ErrLogReplaced
	}
	return c, nil
}

// ShownPart tells how much a reader was shown of attempts that were superseded: of those that were
// superseded after the record of the entry before, and up to the record SupersededAt, the events up
// to Shown. Of attempts without an entry the reader was shown all events up to its position. If
// SupersededAt is the record of the cursor, the reader is inside a retraction.
//
// The entries depend only on the reader's position and on the events that it was shown, so an event
// has the same cursor for all readers that were shown the same events. A zero Shown means that the
// reader was shown none of these attempts.
type ShownPart struct {
	Shown        Position
	SupersededAt uint64
}

// MaxShownParts bounds the entries. If a reader would need more, its last entry covers several
// attempts.
const MaxShownParts = 8

// Retracted reports whether the position is inside a retraction, and returns a position in the run
// of the retracted attempt: the cursor's own record may open the next run.
func (c Cursor) Retracted() (before Position, inside bool) {
	if len(c.ShownParts) == 0 || c.ShownParts[0].SupersededAt != c.Seq {
		return Position{}, false
	}
	return c.ShownParts[0].Shown, true
}

// GenerationOf returns the generation for the protocolVersion of an input. Clients from before
// AG-UI 1.0 send none ("").
func GenerationOf(protocolVersion string) Generation {
	if protocolVersion == "" {
		return Generation0
	}
	return Generation1
}

// Check asks the leader for the record of a cursor of a thread, and returns ErrGone if it was purged.
// It returns nil for a position that the log has not reached.
func (l *Log) Check(ctx context.Context, t Thread, c Cursor) error {
	if c.Seq == 0 {
		return nil
	}
	rec, err := l.At(ctx, c.Seq)
	if err != nil || rec != nil {
		return err
	}
	_, err = l.Missing(ctx, t, c.Seq)
	return err
}
