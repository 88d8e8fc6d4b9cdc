package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/runs"
)

// TestRefusedInputsTakeNoRoom: large inputs that a busy thread refuses leave the size of the log as it
// was. An input that is accepted when it is sent again has its content.
func TestRefusedInputsTakeNoRoom(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.MaxBody = 8 << 20 })
	node.answerRuns()
	node.postMessage("t", "r0").wantStatus(t, "first run", http.StatusOK)
	js, err := jetstream.New(node.log.Conn())
	if err != nil {
		t.Fatal(err)
	}
	stored := func() (size int64) {
		streams := js.ListStreams(t.Context())
		for info := range streams.Info() {
			size += int64(info.State.Bytes)
		}
		if err := streams.Err(); err != nil {
			t.Fatal(err)
		}
		return size
	}
	accept := node.temporal.start
	node.temporal.start = func(runs.Input) error { return alreadyStarted("e9") }
	node.temporal.submit = func(string, runs.SubmitRequest) (runs.SubmitResult, error) {
		return runs.SubmitResult{}, temporal.NewApplicationError("full", runs.ErrorQueueFull)
	}
	before := stored()
	large := strings.Repeat("x", 1<<20)
	for n := range 5 {
		a := node.post(inputWithProps(inputOf(fmt.Sprint("large-", n), large), `{"history":"append","onBusy":"enqueue"}`))
		a.wantStatus(t, "an input to a busy thread", http.StatusTooManyRequests)
	}
	if grown := stored() - before; grown > 30_000 {
		t.Errorf("log after five refused inputs of 1 MiB: grown by %d bytes, want less than 30,000", grown)
	}
	node.temporal.start = accept
	node.post(inputWithProps(inputOf("large-1", large), `{"history":"append"}`)).wantStatus(t, "the same input again", http.StatusOK)
	a := node.do(http.MethodGet, "/v1/threads/t/messages", "")
	if !strings.Contains(a.body, large) {
		t.Errorf("messages of %d bytes have no content of the accepted input", len(a.body))
	}
}
