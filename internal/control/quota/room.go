package quota

import "sync"

// reserve is the part of the free places of a Room that a tenant leaves to others: a tenant has at
// most reserve times as many places as are free. So one tenant takes at most 9/10 of a room, and
// what is left is shared in the same way. A room with fewer than ten places has no reserve.
const reserve = 9

// Room shares a number of places of an API process among tenants: open streams, for instance. It is
// safe for concurrent use.
type Room struct {
	table *Table
	name  Name

	mu    sync.Mutex
	free  int
	taken map[string]int // by tenant; without tenants that have none
}

// NewRoom returns a room with a number of free places, of which a tenant may have as many as its
// quota with a name allows; "" = the places have no quota.
func NewRoom(places int, table *Table, name Name) *Room {
	return &Room{table: table, name: name, free: places, taken: map[string]int{}}
}

// Enter takes a place for a tenant. It does not wait. After nil, the caller must call Leave. Errors:
// *ExceededError if the tenant has reached its quota; ErrFull if the room has no place left for the
// tenant.
func (r *Room) Enter(tenant string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	used := r.taken[tenant]
	if r.name != "" {
		if err := r.table.check(tenant, r.name, int64(used), 1); err != nil {
			return err
		}
	}
	if used >= reserve*r.free {
		return ErrFull
	}
	r.free--
	r.taken[tenant]++
	return nil
}

// Leave returns the place that one call of Enter has taken.
func (r *Room) Leave(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free++
	if r.taken[tenant]--; r.taken[tenant] == 0 {
		delete(r.taken, tenant)
	}
}

// Taken returns the number of places that a tenant has.
func (r *Room) Taken(tenant string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken[tenant]
}
