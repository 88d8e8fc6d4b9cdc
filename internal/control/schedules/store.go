package schedules

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// bucket is the name of the key-value bucket; the log adds its own name as a prefix. It has one key
// for each schedule, <tenant>.<schedule>, both as tokens.
const bucket = "schedules"

// history is how many revisions of a schedule the bucket keeps. A firing names the revision that
// was current when Temporal created it, and reads that revision even if the schedule has changed
// meanwhile.
const history = 8

// Errors of the store.
var (
	// ErrUnknown: there is no such schedule, or the bucket does not have the revision any more.
	ErrUnknown = errors.New("schedules: unknown schedule")
	// ErrChanged: another request has changed the schedule since it was read.
	ErrChanged = errors.New("schedules: the schedule was changed concurrently")
	// ErrExists: a schedule with this ID exists.
	ErrExists = errors.New("schedules: the schedule exists")
)

// Stored is a schedule as the store keeps it.
type Stored struct {
	Schedule
	// Requester is the caller who wrote this revision of the schedule. The schedule's runs belong
	// to this principal, unless RunAs names a service. It has no roles: those of the past must not
	// have an effect.
	Requester *auth.Principal `json:"requester,omitempty"`
	// Owner is who created the schedule, without roles.
	Owner *auth.Principal `json:"owner,omitempty"`
	// ThreadOwner is the owner of the thread ThreadID when this revision was written; nil = the thread
	// did not exist. A firing accepts the thread of no other owner, except its own.
	ThreadOwner *string   `json:"threadOwner,omitempty"`
	CreatedAt   time.Time `json:"createdAt"`
	ChangedAt   time.Time `json:"changedAt"`
	// Revision is the revision of the key in the bucket. Create and Change set it; firings name it.
	Revision uint64 `json:"-"`
}

// Store keeps schedules in a key-value bucket of the log: all that a client has written, including
// the input of the runs. Temporal gets only the times. It is safe for concurrent use, and needs no
// closing: the log owns the connection.
type Store struct{ kv jetstream.KeyValue }

// Open opens the bucket, creating it if it is missing.
func Open(ctx context.Context, l *stream.Log) (*Store, error) {
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, Description: "Perdure: schedules", Storage: jetstream.FileStorage, History: history,
	})
	if err != nil {
		return nil, err
	}
	return &Store{kv}, nil
}

// key returns the key of a schedule.
func key(tenant, id string) string { return stream.KeyToken(tenant) + "." + stream.KeyToken(id) }

// Create writes a new schedule, and sets k.Revision. Errors: ErrExists.
func (s *Store) Create(ctx context.Context, tenant string, k *Stored) error {
	return s.write(k, func(raw []byte) (uint64, error) { return s.kv.Create(ctx, key(tenant, k.ID), raw) })
}

// Change replaces revision k.Revision of a schedule by k, and sets k.Revision to the new one. It is
// a compare-and-swap. Errors: ErrChanged if k.Revision is not the current one.
func (s *Store) Change(ctx context.Context, tenant string, k *Stored) error {
	return s.write(k, func(raw []byte) (uint64, error) { return s.kv.Update(ctx, key(tenant, k.ID), raw, k.Revision) })
}

// write encodes k, has put write it, and maps the errors of the bucket.
func (s *Store) write(k *Stored, put func([]byte) (uint64, error)) error {
	raw, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("schedules: encode: %w", err)
	}
	revision, err := put(raw)
	switch {
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch): // before ErrKeyExists, which matches the same code (nats.go, ErrKeyExists)
		return ErrChanged
	case errors.Is(err, jetstream.ErrKeyExists):
		return ErrExists
	case err != nil:
		return asUnavailable(err)
	}
	k.Revision = revision
	return nil
}

// Get returns the current revision of a schedule. Errors: ErrUnknown.
func (s *Store) Get(ctx context.Context, tenant, id string) (*Stored, error) {
	return read(s.kv.Get(ctx, key(tenant, id)))
}

// A revision is in the bucket before a firing names it, but the replica that answers a read may
// lag. So At reads an unknown revision again: up to 40 times, with pauses of 50 ms, which is 2 s in
// all.
const (
	pollInterval = 50 * time.Millisecond // pause between two reads
	maxPolls     = 40
)

// At returns a certain revision of a schedule. It blocks for up to 2 s if the bucket does not have
// the revision. Errors: ErrUnknown, also if the schedule has changed so often since that the bucket
// dropped the revision.
func (s *Store) At(ctx context.Context, tenant, id string, revision uint64) (*Stored, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for n := 0; ; n++ {
		k, err := read(s.kv.GetRevision(ctx, key(tenant, id), revision))
		if !errors.Is(err, ErrUnknown) || n == maxPolls {
			return k, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// Delete deletes a schedule with all of its revisions. It is no error if there is none.
func (s *Store) Delete(ctx context.Context, tenant, id string) error {
	return asUnavailable(s.kv.Purge(ctx, key(tenant, id)))
}

// List returns up to limit schedules of a tenant in the order of their keys, after a page's cursor;
// "" = from the beginning. next is the cursor of the next page; "" = there is none. Schedules that
// are deleted meanwhile are left out. Errors: stream.ErrInvalidCursor.
func (s *Store) List(ctx context.Context, tenant, after string, limit int) (page []*Stored, next string, err error) {
	afterKey, err := parseCursor(tenant, after)
	if err != nil {
		return nil, "", err
	}
	all, err := stream.Keys(ctx, s.kv, stream.KeyToken(tenant)+".*")
	if err != nil {
		return nil, "", fmt.Errorf("schedules: %w", err)
	}
	first, found := slices.BinarySearch(all, afterKey)
	if found {
		first++
	}
	for _, k := range all[first:] {
		if len(page) == limit {
			return page, next, nil
		}
		stored, err := read(s.kv.Get(ctx, k))
		if errors.Is(err, ErrUnknown) { // deleted since the keys were listed
			continue
		}
		if err != nil {
			return nil, "", err
		}
		page, next = append(page, stored), base64.RawURLEncoding.EncodeToString([]byte(k))
	}
	return page, "", nil
}

// token is the text of a token in a key.
var token = regexp.MustCompile(`^=?[-_A-Za-z0-9]{1,64}$`)

// parseCursor returns the key in a cursor of a tenant's list; "" for "". Errors:
// stream.ErrInvalidCursor.
func parseCursor(tenant, cursor string) (key string, err error) {
	if cursor == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	id, isOfTenant := strings.CutPrefix(string(text), stream.KeyToken(tenant)+".")
	if err != nil || !isOfTenant || !token.MatchString(id) {
		return "", fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, cursor)
	}
	return string(text), nil
}

// read decodes the result of a read of the bucket. It maps a missing key to ErrUnknown, and any
// other failure to stream.ErrUnavailable.
func read(entry jetstream.KeyValueEntry, err error) (*Stored, error) {
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, asUnavailable(err)
	}
	k := &Stored{Revision: entry.Revision()}
	if err := json.Unmarshal(entry.Value(), k); err != nil {
		return nil, fmt.Errorf("schedules: decode: %w", err)
	}
	return k, nil
}

// asUnavailable marks an error of the bucket as stream.ErrUnavailable, so that the API answers 503
// and activities retry. It returns nil for nil.
func asUnavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("schedules: %w: %w", stream.ErrUnavailable, err)
}
