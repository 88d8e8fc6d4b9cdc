package encryption_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// storedMessage returns a message of the log as it is stored.
func storedMessage(t *testing.T, nc *nats.Conn, seq uint64) *jetstream.RawStreamMsg {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "PERDURE")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := s.GetMsg(t.Context(), seq)
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

// publish writes a message to the log, as an intruder would, and returns its sequence.
func publish(t *testing.T, nc *nats.Conn, subject string, header nats.Header, data []byte) uint64 {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ack, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Header: nats.Header{"Perdure": header["Perdure"]}, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}
