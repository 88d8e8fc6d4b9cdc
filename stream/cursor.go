package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Errors of cursors.
var (
	// ErrInvalidCursor tells that a text is not a cursor.
	ErrInvalidCursor = errors.New("stream: invalid cursor")
	// ErrLogReplaced tells that a cursor belongs to another log.
	ErrLogReplaced = errors.New("stream: the cursor belongs to another log")
)

// Profile is the generation of AG-UI that a reader understands.
type Profile string

const (
	// Profile1 is AG-UI 1.x.
	Profile1 Profile = "1"
	// Profile0 is the generation before AG-UI 1.0.
	Profile0 Profile = "0"
)

// Position is a place between two events: after the Index-th event that a reader is shown of the
// record Seq. The zero position is before all events.
type Position struct {
	Seq   uint64
	Index int
}

// MaxIndex is after every event of a record.
const MaxIndex = 1<<20 - 1

// Before reports whether p comes before q in the log.
func (p Position) Before(q Position) bool {
	return p.Seq < q.Seq || p.Seq == q.Seq && p.Index < q.Index
}

// Cursor is the position of a reader. Its text is opaque to clients, and sorts in the order of the
// log. The zero cursor is that of an event after which a reader cannot continue.
type Cursor struct {
	Position
	Profile Profile
	Epoch   string
	// Followed tells that the reader did not send the input of the run.
	Followed bool
	// Heal tells that a full snapshot has to precede the run's last event.
	Heal bool
	// Unseen tells what the reader was not shown of attempts that are superseded after this
	// position, the earliest first. What is retracted there depends on it.
	Unseen []Unseen
}

// The letters of a cursor, between position and profile.
const (
	letterFollowed = "f"
	letterHeal     = "h"
)

// IsZero reports whether the cursor is the zero cursor.
func (c Cursor) IsZero() bool { return c.Position == Position{} && c.Profile == "" && c.Epoch == "" }

// String returns the cursor's text: the position first and of fixed width, so that texts sort. The
// zero cursor's text is empty.
func (c Cursor) String() string {
	if c.IsZero() {
		return ""
	}
	text := make([]byte, 0, 64) // without fmt: it is called for every event of every reader
	text = append(c.Position.append(text), '-')
	if c.Followed {
		text = append(text, letterFollowed...)
	}
	if c.Heal {
		text = append(text, letterHeal...)
	}
	text = append(append(text, c.Profile...), c.Epoch...)
	for _, u := range c.Unseen {
		text = appendHex(u.Shown.append(append(text, '-')), u.SupersededAt, seqDigits)
	}
	return string(text)
}

// Digits of a position's two parts.
const (
	seqDigits   = 12
	indexDigits = 5
)

func (p Position) append(text []byte) []byte {
	return appendHex(appendHex(text, p.Seq, seqDigits), uint64(p.Index), indexDigits) //nolint:gosec // never negative
}

// appendHex appends the last digits of a number.
func appendHex(text []byte, n uint64, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		text = append(text, "0123456789abcdef"[n>>shift&0xf])
	}
	return text
}

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

func decodeUnseen(s string) (Unseen, error) {
	if len(s) != 2*seqDigits+indexDigits {
		return Unseen{}, ErrInvalidCursor
	}
	behind, err := decodePosition(s[:seqDigits+indexDigits])
	if err != nil {
		return Unseen{}, err
	}
	died, err := strconv.ParseUint(s[seqDigits+indexDigits:], 16, 4*seqDigits)
	if err != nil {
		return Unseen{}, fmt.Errorf("%w: %q", ErrInvalidCursor, s)
	}
	return Unseen{Shown: behind, SupersededAt: died}, nil
}

// CursorAt returns the cursor after a record, for a reader of the current generation.
func (l *Log) CursorAt(seq uint64) Cursor {
	return Cursor{Position: Position{Seq: seq}, Profile: Profile1, Epoch: l.epoch}
}

// ParseCursor reads a cursor of this log. It fails with ErrInvalidCursor or ErrLogReplaced.
func (l *Log) ParseCursor(text string) (Cursor, error) {
	parts := strings.Split(text, "-")
	if len(parts) < 2 || len(parts) > 2+MaxUnseen {
		return Cursor{}, fmt.Errorf("%w: %.40q", ErrInvalidCursor, text)
	}
	at, err := decodePosition(parts[0])
	if err != nil {
		return Cursor{}, err
	}
	c := Cursor{Position: at}
	kind, followed := strings.CutPrefix(parts[1], letterFollowed)
	kind, heal := strings.CutPrefix(kind, letterHeal)
	if len(kind) < 2 {
		return Cursor{}, fmt.Errorf("%w: %.40q", ErrInvalidCursor, text)
	}
	c.Followed, c.Heal, c.Profile, c.Epoch = followed, heal, Profile(kind[:1]), kind[1:]
	if c.Profile != Profile0 && c.Profile != Profile1 {
		return Cursor{}, fmt.Errorf("%w: profile %q", ErrInvalidCursor, c.Profile)
	}
	for _, part := range parts[2:] {
		u, err := decodeUnseen(part)
		if err != nil {
			return Cursor{}, err
		}
		if n := len(c.Unseen); !u.Shown.Before(at) || u.SupersededAt < at.Seq || n > 0 && u.SupersededAt <= c.Unseen[n-1].SupersededAt {
			return Cursor{}, fmt.Errorf("%w: %.60q", ErrInvalidCursor, text)
		}
		c.Unseen = append(c.Unseen, u)
	}
	if c.Epoch != l.epoch {
		return Cursor{}, ErrLogReplaced
	}
	return c, nil
}

// Unseen tells what a reader was shown of attempts that were superseded: of those that were
// superseded up to the record SupersededAt, and after that of the entry before, events up to Shown.
// Of attempts without an entry the reader was shown all events up to its position. An entry whose
// record is that of the cursor tells that the reader is inside a retraction.
//
// The entries are determined by what the reader was shown and by its position, so an event has the
// same cursor for all readers that were shown the same. Shown is the last event that the reader was
// shown of any of these attempts; zero = none.
type Unseen struct {
	Shown        Position
	SupersededAt uint64
}

// MaxUnseen bounds the entries. If a reader would need more, its last entry covers several
// attempts.
const MaxUnseen = 8

// Retracted reports whether the position is inside a retraction, and returns a position in the run
// of the retracted attempt.
func (c Cursor) Retracted() (before Position, inside bool) {
	if len(c.Unseen) == 0 || c.Unseen[0].SupersededAt != c.Seq {
		return Position{}, false
	}
	return c.Unseen[0].Shown, true
}

// ProfileOf returns the profile for the protocolVersion of an input. Clients from before AG-UI 1.0
// send none.
func ProfileOf(protocolVersion string) Profile {
	if protocolVersion == "" {
		return Profile0
	}
	return Profile1
}

// Check returns ErrGone if the record of a cursor was purged. It does not judge a position that the
// log has not reached.
func (l *Log) Check(ctx context.Context, c Cursor) error {
	if c.Seq == 0 {
		return nil
	}
	rec, err := l.At(ctx, c.Seq)
	if err != nil || rec != nil {
		return err
	}
	return l.Missing(ctx, c.Seq)
}
