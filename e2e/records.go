package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// record is a record of the log, as far as tests look from outside: where it stands, what it is and
// when it was written.
type record struct {
	lane, kind, step string
	at               time.Time
}

// records reads what the log has of a run.
func (p *endpoint) records(ctx context.Context, in input) ([]record, error) {
	where, err := p.addresses(ctx)
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(where.NATS)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	c, err := js.OrderedConsumer(ctx, "PERDURE", jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{"perdure.default." + in.ThreadID + "." + in.RunID + ".>"},
	})
	if err != nil {
		return nil, err
	}
	var list []record
	for {
		m, err := c.Next(jetstream.FetchContext(ctx))
		if err != nil {
			return nil, fmt.Errorf("records of %s: %w", in.ThreadID, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		fields := strings.Fields(m.Headers().Get("Perdure"))
		if len(fields) < 2 {
			return nil, fmt.Errorf("record %d has the header %q", meta.Sequence.Stream, fields)
		}
		subject := m.Subject()
		list = append(list, record{lane: subject[strings.LastIndexByte(subject, '.')+1:], kind: fields[0], step: fields[1], at: meta.Timestamp})
		if meta.NumPending == 0 {
			return list, nil
		}
	}
}
