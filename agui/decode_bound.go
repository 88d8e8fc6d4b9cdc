package agui

import "fmt"

// maxListEntries bounds each list of an input, and maxEntries all entries of its lists together with
// its metadata and its unknown members. They are checked before the memory of an entry is allocated:
// decoded, an entry occupies many times its bytes.
const (
	maxListEntries = 10_000
	maxEntries     = 100_000
)

// admit counts further entries of a member, and fails if the input has too many.
func (d *decoder) admit(name string, more int) bool {
	d.entries += more
	if d.bounded && d.entries > maxEntries {
		d.fail(name, fmt.Sprintf("exceeds the %d entries that an input may have in all of its lists and objects", maxEntries))
	}
	return d.err == nil
}

// split appends the members of an object to the slab. It fails for an object with too many.
func (d *decoder) split(object []byte) {
	var complete bool
	if d.slab, complete = appendMembersUpTo(d.slab, object, d.mostMembers(object)); !complete {
		d.fail("", fmt.Sprintf("may have at most %d members", maxEntries))
	}
}

// mostMembers returns how many members of an object are decoded. One more than maxEntries lets admit
// fail.
func (d *decoder) mostMembers(object []byte) int {
	if d.bounded {
		return maxEntries + 1
	}
	return len(object)
}
