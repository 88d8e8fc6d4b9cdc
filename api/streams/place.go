package streams

import (
	"context"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/quota"
)

// waitingShare is the part of the places that streams of threads without a record may take, in
// addition: one of waitingShare.
const waitingShare = 10

// place is what an open stream takes of the node. One goroutine uses it.
type place struct {
	streams *Streams
	caller  auth.Principal
	room    *quota.Room // the room that the stream is in: streams.room or streams.waiting
}

// placeKey is the context key of a *place.
type placeKey struct{}

// Enter counts a stream of the caller's tenant, or of nobody if the request has no credentials. It
// does not wait. After nil, the caller uses the returned context for the stream, and calls leave at
// its end. Errors: 429 quota_exceeded, 503 node_full.
func (s *Streams) Enter(ctx context.Context) (counted context.Context, leave func(), err error) {
	p := &place{streams: s}
	p.caller, _ = auth.From(ctx)
	if err := p.move(s.room); err != nil {
		return nil, nil, err
	}
	return context.WithValue(ctx, placeKey{}, p), func() { p.room.Leave(p.caller) }, nil
}

// AwaitThread tells that the stream of a context of Enter waits for a thread that does not exist:
// it moves to a room of its own, so that it takes no place of other streams. Pump moves it back when
// the thread begins. Errors: those of Enter.
func AwaitThread(ctx context.Context) error {
	p, ok := ctx.Value(placeKey{}).(*place)
	if !ok {
		return nil
	}
	return p.move(p.streams.waiting)
}

// begin ends AwaitThread. Without one it does nothing.
func begin(ctx context.Context) error {
	p, ok := ctx.Value(placeKey{}).(*place)
	if !ok {
		return nil
	}
	return p.move(p.streams.room)
}

// move moves the stream to a room. After an error it stays where it is.
func (p *place) move(room *quota.Room) error {
	if p.room == room {
		return nil
	}
	if err := room.Enter(p.caller); err != nil {
		return problem.FullIf(err, "open streams")
	}
	if p.room != nil {
		p.room.Leave(p.caller)
	}
	p.room = room
	return nil
}

// Open returns the number of open streams of a tenant, without those that wait for a thread.
func (s *Streams) Open(tenant string) int { return s.room.Taken(tenant) }

// OpenOfAll returns the number of open streams of all tenants.
func (s *Streams) OpenOfAll() int { return s.room.TakenByAll() }
