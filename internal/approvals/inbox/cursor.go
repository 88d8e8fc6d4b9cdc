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

// Resumable is how long a cursor of the feed is valid: a day less than events are kept, because
// clocks of nodes differ.
const Resumable = EventTTL - 24*time.Hour

// ErrGone: events after the cursor may have expired.
var ErrGone = errors.New("inbox: the cursor is too old")

// Cursor is a position in the feed. Its text is opaque to clients, and sorts in the order of the
// feed.
type Cursor struct {
	// revision is the revision of the bucket, at the time of that revision, and epoch the instance
	// of the bucket (Store.epoch).
	revision uint64
	at       time.Time
	epoch    string
}

// String returns the text of the cursor; ParseCursor parses it.
func (c Cursor) String() string {
	return fmt.Sprintf("%012x-%08x-%s", c.revision, c.at.Unix(), c.epoch)
}

var cursorText = regexp.MustCompile(`^([0-9a-f]{12})-([0-9a-f]{8})-([0-9a-z]{1,16})$`)

// ParseCursor parses the text of a cursor. Errors: stream.ErrInvalidCursor; stream.ErrLogReplaced
// if the cursor is of another instance of the bucket; ErrGone.
func (s *Store) ParseCursor(text string) (Cursor, error) {
	parts := cursorText.FindStringSubmatch(text)
	if parts == nil {
		return Cursor{}, fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, text)
	}
	revision, _ := strconv.ParseUint(parts[1], 16, 64) // the pattern bounds both numbers
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

// pageCursor returns the cursor of the page after a sort key: that of the page's last interrupt
// in base64url.
func pageCursor(sortKey string) string { return base64.RawURLEncoding.EncodeToString([]byte(sortKey)) }

var sortKeyText = regexp.MustCompile(`^[0-9a-f]{12}\.[-_A-Za-z0-9]{1,64}$`)

// parsePageCursor returns the sort key in the cursor of a page; "" = the beginning. Errors:
// stream.ErrInvalidCursor.
func parsePageCursor(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	sortKey, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(cursor, "="))
	if err != nil || !sortKeyText.Match(sortKey) {
		return "", fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, cursor)
	}
	return string(sortKey), nil
}
