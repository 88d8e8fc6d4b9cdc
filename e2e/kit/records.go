package kit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Record is a record of the log: its lane, kind, step and time.
type Record struct {
	lane, Kind, Step string
	At               time.Time
}

// Records reads the log of a run.
func (p *Endpoint) Records(ctx context.Context, in Input) ([]Record, error) {
	where, err := p.Addresses(ctx)
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
	var list []Record
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
		list = append(list, Record{lane: subject[strings.LastIndexByte(subject, '.')+1:], Kind: fields[0], Step: fields[1], At: meta.Timestamp})
		if meta.NumPending == 0 {
			return list, nil
		}
	}
}
