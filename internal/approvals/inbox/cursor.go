package inbox

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/stream"
)

// Resumable is for how long a cursor of the feed is good: a day less than events are kept, since
// clocks differ.
const Resumable = Kept - 24*time.Hour

// ErrGone: what lies behind the cursor may not be there any more.
var ErrGone = errors.New("inbox: the cursor is too old")

// Cursor is a place in the feed. Its text is opaque to clients; text order is the feed's order.
type Cursor struct {
	revision uint64
	at       time.Time
	epoch    string
}

// String writes the cursor.
func (c Cursor) String() string {
	return fmt.Sprintf("%012x-%08x-%s", c.revision, c.at.Unix(), c.epoch)
}

var cursorText = regexp.MustCompile(`^([0-9a-f]{12})-([0-9a-f]{8})-([0-9a-z]{1,16})$`)

// ParseCursor reads a cursor of this bucket. It fails with stream.ErrInvalidCursor, with
// stream.ErrLogReplaced if it is another bucket's, or with ErrGone.
func (s *Store) ParseCursor(text string) (Cursor, error) {
	parts := cursorText.FindStringSubmatch(text)
	if parts == nil {
		return Cursor{}, fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, text)
	}
	revision, _ := strconv.ParseUint(parts[1], 16, 64) // the pattern bounds both
	seconds, _ := strconv.ParseInt(parts[2], 16, 64)
	c := Cursor{revision: revision, at: time.Unix(seconds, 0), epoch: parts[3]}
	switch {
	case c.epoch != s.epoch:
		return Cursor{}, stream.ErrLogReplaced
	case time.Since(c.at) > Resumable:
		return Cursor{}, ErrGone
	}
	return c, nil
}

// A page's cursor is the place of its last approval.

func pageCursor(place string) string { return base64.RawURLEncoding.EncodeToString([]byte(place)) }

var placeText = regexp.MustCompile(`^[0-9a-f]{12}\.[-_A-Za-z0-9]{1,64}$`)

// placeAfter returns the place at which a page begins, behind a cursor; "" is the beginning.
func placeAfter(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	place, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(cursor, "="))
	if err != nil || !placeText.Match(place) {
		return "", fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, cursor)
	}
	return string(place), nil
}
