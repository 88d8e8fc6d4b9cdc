package streamtest

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Requests are the messages that processes have sent to a server, by their subjects.
type Requests []*nats.Msg

// Number returns how many of the requests are about a stream, or are writes below a subject: about
// is the end of a subject of JetStream's API, or its beginning otherwise.
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

// CountRequests collects the messages that connections send to a server, from now on. The returned
// function returns what it has collected since it was called last: requests to JetStream's API, and
// writes. Requests are collected before they are answered.
func CountRequests(t testing.TB, s *server.Server) func() Requests {
	t.Helper()
	nc := Connect(t, s)
	sub, err := nc.SubscribeSync(">")
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() (requests Requests) {
		t.Helper()
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		for n, _, _ := sub.Pending(); n > 0; n-- {
			m, err := sub.NextMsg(time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(m.Subject, "_INBOX.") && !strings.HasPrefix(m.Subject, "$JS.ACK.") {
				requests = append(requests, m)
			}
		}
		return requests
	}
}
