package quota

import (
	"sync"

	"github.com/perdure/perdure/internal/auth"
)

// reserve is the part of the free places of a Room that a tenant leaves to others: a tenant has at
// most reserve times as many places as are free. So one tenant takes at most 9/10 of a room, and
// what is left is shared in the same way. A room with fewer than ten places has no reserve.
const reserve = 9

// Room shares a number of places of an API process among tenants, and those of a tenant among its
// subjects: open streams, for instance. It is safe for concurrent use.
type Room struct {
	table *Table
	name  Name
	most  Limit // the places that one tenant can get
	size  int   // the places of all tenants

	mu    sync.Mutex
	free  int
	taken map[holder]int // without those that have none
}

// NewRoom returns a room with a number of free places, of which a tenant may have as many as its
// quota with a name allows; "" = the places have no quota. A subject may have SubjectPercent of
// what its tenant can get.
func NewRoom(places int, table *Table, name Name) *Room {
	return &Room{table: table, name: name, most: Limit(places - places/(reserve+1)), size: places, free: places, taken: map[holder]int{}}
}

// TakenByAll returns how many places all tenants have.
func (r *Room) TakenByAll() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size - r.free
}

// Enter takes a place for a caller. It does not wait. After nil, the caller of Enter must call
// Leave. Errors: *ExceededError if the tenant has reached its quota, or the subject its part of it;
// ErrFull if the room has no place left for the tenant, or no quota and the subject has its part.
func (r *Room) Enter(p auth.Principal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	used := r.taken[holder{tenant: p.Tenant}]
	if err := r.check(p, used); err != nil {
		return err
	}
	if used >= reserve*r.free {
		return ErrFull
	}
	r.free--
	r.add(p, 1)
	return nil
}

// check returns an error if a caller, whose tenant has a number of places, may not have one more:
// errors of Enter. The caller of check holds mu.
func (r *Room) check(p auth.Principal, ofTenant int) error {
	limit := r.most
	if r.name != "" {
		if err := r.table.check(p.Tenant, r.name, int64(ofTenant), 1); err != nil {
			return err
		}
		if quota := r.table.Of(p.Tenant, r.name); quota != Unlimited {
			limit = min(limit, quota)
		}
	}
	used := int64(r.taken[holder{p.Tenant, p.Subject}])
	limit = r.table.subjectLimit(p.Tenant, p.Subject, limit)
	switch {
	case p.Subject == "" || limit.Permits(used, 1):
		return nil
	case r.name == "":
		return ErrFull
	}
	return r.table.refuseSubject(p.Tenant, r.name, limit, used)
}

// Leave returns the place that one call of Enter has taken.
func (r *Room) Leave(p auth.Principal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free++
	r.add(p, -1)
}

// add changes the places of a caller and its tenant. The caller holds mu.
func (r *Room) add(p auth.Principal, n int) {
	holders := []holder{{tenant: p.Tenant}}
	if p.Subject != "" {
		holders = append(holders, holder{p.Tenant, p.Subject})
	}
	for _, h := range holders {
		if r.taken[h] += n; r.taken[h] == 0 {
			delete(r.taken, h)
		}
	}
}

// Taken returns the number of places that a tenant has.
func (r *Room) Taken(tenant string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken[holder{tenant: tenant}]
}
