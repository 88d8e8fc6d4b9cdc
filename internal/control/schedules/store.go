package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// bucket holds the schedules.
const bucket = "schedules"

// history is how many revisions of a schedule are kept: a firing that was begun before a change
// needs its own.
const history = 8

// Errors of the store.
var (
	// ErrUnknown: there is no such schedule, or not any more in this revision.
	ErrUnknown = errors.New("schedules: unknown schedule")
	// ErrChanged: somebody else has changed the schedule meanwhile.
	ErrChanged = errors.New("schedules: the schedule was changed meanwhile")
	// ErrExists: there is a schedule of this id.
	ErrExists = errors.New("schedules: the schedule exists")
)

// Kept is a schedule as it is kept.
type Kept struct {
	Schedule
	// Requester said what the schedule says now: its runs are theirs.
	Requester *auth.Principal `json:"requester,omitempty"`
	CreatedAt time.Time       `json:"createdAt"`
	ChangedAt time.Time       `json:"changedAt"`
	// Revision names what is kept here, among all that the schedule has ever said.
	Revision uint64 `json:"-"`
}

// Store is the bucket. It is safe for concurrent use.
type Store struct{ kv jetstream.KeyValue }

// Open opens the bucket, creating it if it is missing.
func Open(ctx context.Context, l *stream.Log) (*Store, error) {
	kv, err := l.KeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: bucket, Description: "Perdure: schedules, whose times Temporal keeps", Storage: jetstream.FileStorage, History: history,
	})
	if err != nil {
		return nil, err
	}
	return &Store{kv}, nil
}

// token returns an id as a key may have it: distinct ones are distinct.
func token(id string) string { return strings.Replace(stream.Token(id), "~", "=", 1) }

func key(tenant, id string) string { return token(tenant) + "." + token(id) }

// Create keeps a new schedule, and sets its revision. Errors: ErrExists.
func (s *Store) Create(ctx context.Context, tenant string, k *Kept) error {
	return s.write(k, func(raw []byte) (uint64, error) { return s.kv.Create(ctx, key(tenant, k.ID), raw) })
}

// Change keeps what a schedule says from now on, in the place of the revision that k has, and sets
// the new one. Errors: ErrChanged.
func (s *Store) Change(ctx context.Context, tenant string, k *Kept) error {
	return s.write(k, func(raw []byte) (uint64, error) { return s.kv.Update(ctx, key(tenant, k.ID), raw, k.Revision) })
}

func (s *Store) write(k *Kept, put func([]byte) (uint64, error)) error {
	raw, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("schedules: encode: %w", err)
	}
	revision, err := put(raw)
	switch {
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch): // its code is that of the next, too
		return ErrChanged
	case errors.Is(err, jetstream.ErrKeyExists):
		return ErrExists
	case err != nil:
		return asUnavailable(err)
	}
	k.Revision = revision
	return nil
}

// Get returns what a schedule says now. Errors: ErrUnknown.
func (s *Store) Get(ctx context.Context, tenant, id string) (*Kept, error) {
	return read(s.kv.Get(ctx, key(tenant, id)))
}

// A revision is there before anything names it, but the replica that is asked may not have it yet.
const (
	look  = 50 * time.Millisecond // between two looks
	looks = 40
)

// At returns what a schedule said in a revision. Errors: ErrUnknown, also if it has said too much
// since.
func (s *Store) At(ctx context.Context, tenant, id string, revision uint64) (*Kept, error) {
	again := time.NewTicker(look)
	defer again.Stop()
	for n := 0; ; n++ {
		k, err := read(s.kv.GetRevision(ctx, key(tenant, id), revision))
		if !errors.Is(err, ErrUnknown) || n == looks {
			return k, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-again.C:
		}
	}
}

// Delete forgets a schedule, with all that it has said.
func (s *Store) Delete(ctx context.Context, tenant, id string) error {
	return asUnavailable(s.kv.Purge(ctx, key(tenant, id)))
}

// List returns up to limit schedules of a tenant behind a place, and the place of the last one; ""
// = there are no more. The order is always the same.
func (s *Store) List(ctx context.Context, tenant, after string, limit int) (page []*Kept, next string, err error) {
	keys, err := s.kv.ListKeysFiltered(ctx, token(tenant)+".*")
	if err != nil {
		return nil, "", asUnavailable(err)
	}
	var all []string
	for k := range keys.Keys() {
		all = append(all, k)
	}
	if ctx.Err() != nil { // else they are all
		return nil, "", asUnavailable(context.Cause(ctx))
	}
	slices.Sort(all)
	prefix := token(tenant) + "."
	first, found := slices.BinarySearch(all, prefix+after)
	if found {
		first++
	}
	for _, k := range all[first:] {
		if len(page) == limit {
			return page, next, nil
		}
		kept, err := read(s.kv.Get(ctx, k))
		if errors.Is(err, ErrUnknown) { // just now
			continue
		}
		if err != nil {
			return nil, "", err
		}
		page, next = append(page, kept), strings.TrimPrefix(k, prefix)
	}
	return page, "", nil
}

func read(entry jetstream.KeyValueEntry, err error) (*Kept, error) {
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, asUnavailable(err)
	}
	k := &Kept{Revision: entry.Revision()}
	if err := json.Unmarshal(entry.Value(), k); err != nil {
		return nil, fmt.Errorf("schedules: decode: %w", err)
	}
	return k, nil
}

func asUnavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("schedules: %w: %w", stream.ErrUnavailable, err)
}
