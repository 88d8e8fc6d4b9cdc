package threads

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/stream"
)

// BenchmarkSearch searches 100,000 threads of a tenant, of which a caller may read one in ten: for
// text that one thread has, for text that many have, and for text that none has.
func BenchmarkSearch(b *testing.B) {
	t := newTenant("shop")
	for n := range 100_000 {
		owner := fmt.Sprintf("user-%d", n%10)
		d := stream.Description{DerivedTitle: fmt.Sprintf("Refund the order %d of the customer Müller in Zürich", n), Metadata: map[string]string{"case": fmt.Sprint(n)}}
		item := &entry{
			token: fmt.Sprintf("t%06d", n), id: fmt.Sprintf("t%06d", n), agent: "support", status: stream.StatusIdle, updatedAt: int64(n),
			access: accessOf(&stream.Access{Owner: &owner}), title: d.Title(), metadata: d.Metadata, text: searched(&d),
		}
		t.byToken[item.token], t.sorted = item, append(t.sorted, item)
	}
	idx := &Index{tenants: map[string]*tenantThreads{"shop": t}}
	mayRead := func(a stream.Access) bool { return *a.Owner == "user-0" }
	for _, text := range []string{"order 90 of", "MÜLLER", "nothing"} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				if _, err := idx.List("shop", Filter{Text: text, MayRead: mayRead}, "", 100); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
