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
	// ErrInvalidCursor: the text is no cursor of ours.
	ErrInvalidCursor = errors.New("stream: invalid cursor")
	// ErrLogReplaced: the cursor belongs to another log.
	ErrLogReplaced = errors.New("stream: the cursor belongs to another log")
)

// Profile is the protocol generation that a reader is spoken to in.
type Profile string

const (
	// Profile1 is AG-UI 1.x.
	Profile1 Profile = "1"
	// Profile0 is what clients from before the protocol's first version accept.
	Profile0 Profile = "0"
)

// Position is a place between two events of the log: behind the Index-th event that a reader is
// shown of the record Seq. The zero position is before everything.
type Position struct {
	Seq   uint64
	Index int
}

// MaxIndex is behind every event of a record.
const MaxIndex = 1<<20 - 1

func (p Position) Before(q Position) bool {
	return p.Seq < q.Seq || p.Seq == q.Seq && p.Index < q.Index
}

// Cursor is where a reader is. Its text is opaque to clients, and text order is log order. The zero
// cursor is that of an event behind which nobody can go on.
type Cursor struct {
	Position
	Profile Profile
	Epoch   string
	// Followed tells that the reader is shown the run as one who did not send its input.
	Followed bool
	// Heal tells that the reader is owed a full snapshot before the run's last event.
	Heal bool
	// Unseen is what the reader was not shown of attempts whose deaths come behind this place, the earliest death
	// first. What is withdrawn there depends on it.
	Unseen []Unseen
}

// The letters of a cursor, between position and profile.
const (
	letterFollowed = "f"
	letterHeal     = "h"
)

// IsZero tells whether there is no going on behind the cursor's event.
func (c Cursor) IsZero() bool { return c.Position == Position{} && c.Profile == "" && c.Epoch == "" }

// String writes the cursor: position first and of fixed width, so that texts sort. The zero cursor's
// text is empty.
func (c Cursor) String() string {
	if c.IsZero() {
		return ""
	}
	text := make([]byte, 0, 64) // by hand: one is written for every event of every viewer
	text = append(c.Position.append(text), '-')
	if c.Followed {
		text = append(text, letterFollowed...)
	}
	if c.Heal {
		text = append(text, letterHeal...)
	}
	text = append(append(text, c.Profile...), c.Epoch...)
	for _, u := range c.Unseen {
		text = appendHex(u.Behind.append(append(text, '-')), u.Died, seqDigits)
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

// appendHex writes a number's last digits.
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
	return Unseen{Behind: behind, Died: died}, nil
}

// CursorAt is the cursor behind a record, for a reader of the current generation.
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
		if n := len(c.Unseen); !u.Behind.Before(at) || u.Died < at.Seq || n > 0 && u.Died <= c.Unseen[n-1].Died {
			return Cursor{}, fmt.Errorf("%w: %.60q", ErrInvalidCursor, text)
		}
		c.Unseen = append(c.Unseen, u)
	}
	if c.Epoch != l.epoch {
		return Cursor{}, ErrLogReplaced
	}
	return c, nil
}

// Unseen tells how much a reader was shown of attempts that died: of those whose deaths come up to the
// record Died, and behind that of the entry before, what they said up to Behind. Of those that no entry
// tells of it was shown all up to where it is. An entry whose record is that of the cursor tells that the
// reader is inside a withdrawal.
//
// What a reader was shown, and where it is, determine the entries; where it was cut on the way does not:
// an event has the same cursor for all who were shown the same. There are as few as will do. Behind is the
// last event that the reader was shown of any of these attempts, and zero if it was shown none.
type Unseen struct {
	Behind Position
	Died   uint64
}

// MaxUnseen bounds how often a reader comes back before deaths that it knows: what is more is taken together.
const MaxUnseen = 8

// Retracted tells whether the place is inside a withdrawal, and a place in the run from which that is.
func (c Cursor) Retracted() (before Position, inside bool) {
	if len(c.Unseen) == 0 || c.Unseen[0].Died != c.Seq {
		return Position{}, false
	}
	return c.Unseen[0].Behind, true
}

// ProfileOf returns the profile for the protocolVersion of an input: clients from before the
// protocol's first version send none.
func ProfileOf(protocolVersion string) Profile {
	if protocolVersion == "" {
		return Profile0
	}
	return Profile1
}

// Check tells whether a cursor's record can still be read: ErrGone if it was purged. A place that the log has
// not reached is not judged here.
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
