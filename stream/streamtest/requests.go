package streamtest

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Requests are the messages that processes have sent to a server, by their subjects.
type Requests []*nats.Msg

// Number returns how many requests were sent to a subject of JetStream's API, given without "$JS.API.",
// or how many writes to subjects that begin with about.
func (r Requests) Number(about string) (n int) {
	for _, m := range r {
		if strings.HasPrefix(m.Subject, about) || m.Subject == "$JS.API."+about {
			n++
		}
	}
	return n
}

// Subjects returns the subjects of the requests, in their order.
func (r Requests) Subjects() []string {
	var subjects []string
	for _, m := range r {
		subjects = append(subjects, m.Subject)
	}
	return subjects
}

// CountRequests collects the requests of connections to a server, from now on: those to JetStream's
// API, and writes to the log and its buckets. The returned function returns what was collected since
// it was called last. A request is collected before it is answered.
func CountRequests(t testing.TB, s *server.Server) func() Requests {
	t.Helper()
	nc := Connect(t, s)
	collected := make(chan *nats.Msg, 4096)
	for _, subject := range []string{"$JS.API.>", "perdure.>", "$KV.>", "$O.>"} {
		if _, err := nc.ChanSubscribe(subject, collected); err != nil {
			t.Fatal(err)
		}
	}
	collect := func() (requests Requests) {
		t.Helper()
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		for range len(collected) {
			requests = append(requests, <-collected)
		}
		return requests
	}
	collect() // the server has the subscriptions now
	return collect
}
