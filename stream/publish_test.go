package stream_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// recordsOf returns the run's records in the log.
func recordsOf(t *testing.T, l *stream.Log) []*stream.Record {
	t.Helper()
	return must[[]*stream.Record](t)(l.ReadTo(testContext(t), run, 0))
}

// TestRecordsAreWrittenOnceAfterLoss: a broken connection leaves open whether a record was
// written. The record is written once, at its position, and the attempt continues.
func TestRecordsAreWrittenOnceAfterLoss(t *testing.T) {
	t.Parallel()
	for _, lost := range []loss{thePublication, theAcknowledgement} {
		t.Run(map[loss]string{thePublication: "publication", theAcknowledgement: "acknowledgement"}[lost], func(t *testing.T) {
			t.Parallel()
			ctx, s := testContext(t), streamtest.Server(t)
			n := &flakyNetwork{server: s}
			l := n.dial(t, ctx)
			n.loseNext(lost)
			must[uint64](t)(l.OpenStep(ctx, place("1/model", 0), nil, &agui.StepStarted{StepName: "model"}))
			n.loseNext(lost)
			a := begin(t, ctx, l, place("1/model", 0))
			n.loseNext(lost)
			for i := range 100 {
				if err := a.Emit(ctx, textContent("m", fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
			}
			after := must[uint64](t)(a.Finish(ctx, &stream.Result{}, textContent("m", "end")))
			n.loseNext(lost)
			if _, earlier, err := l.Seal(ctx, place("end", after), &agui.RunError{Message: "over"}); err != nil || earlier != nil {
				t.Fatalf("first seal: got the earlier end %v, %v, want none", earlier, err)
			}
			if n.losses() != 4 {
				t.Fatalf("losses: got %d, want 4", n.losses())
			}
			kinds, count := "", 0
			for _, r := range recordsOf(t, streamtest.OpenOn(t, s)) {
				events := must[[][]byte](t)(r.Events(ctx))
				if r.Kind == stream.KindEvents || r.Kind == stream.KindDone {
					for _, e := range events {
						want := fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"%d"}`, count)
						if count == 100 {
							want = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"end"}`
						}
						mustEqual(t, fmt.Sprintf("event %d", count), string(e), want)
						count++
					}
				}
				if r.Kind != stream.KindEvents {
					kinds += " " + string(r.Kind)
				}
			}
			if kinds != " open attempt done terminal" || count != 101 {
				t.Errorf("the log has%s with %d events, want one of each with 101", kinds, count)
			}
		})
	}
}

// TestAttemptIsReplacedWhileDisconnected: an attempt that is disconnected from the log may be
// replaced meanwhile. Its unwritten events are never written.
func TestAttemptIsReplacedWhileDisconnected(t *testing.T) {
	t.Parallel()
	ctx, s := testContext(t), streamtest.Server(t)
	n := &flakyNetwork{server: s}
	l, other := n.dial(t, ctx), streamtest.OpenOn(t, s)
	fenced := begin(t, ctx, l, place("1/model", 0))
	work, cancel := fenced.Context(ctx)
	defer cancel()
	n.loseNext(thePublication)
	if err := fenced.Emit(ctx, textContent("m", "late")); err != nil {
		t.Fatal(err)
	}
	newer := begin(t, ctx, other, place("1/model", 0))
	<-work.Done()
	if _, err := fenced.Finish(ctx, &stream.Result{}); !errors.Is(err, stream.ErrFenced) || errors.Is(err, stream.ErrOver) {
		t.Errorf("Finish of the late attempt: got %v, want ErrFenced and not ErrOver: the step is not over", err)
	}
	must[uint64](t)(newer.Finish(ctx, &stream.Result{}, textContent("m", "now")))
	for _, r := range recordsOf(t, other) {
		for _, e := range must[[][]byte](t)(r.Events(ctx)) {
			wantEqual(t, "event", string(e), `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"now"}`)
		}
	}
}

// TestLaggingReplicaIsNoLoss: a replica that lacks records is no evidence that the log has
// lost them. The reader gets a retryable error.
func TestLaggingReplicaIsNoLoss(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	must[uint64](t)(l.OpenStep(ctx, place("1/model", 0), nil, &agui.StepStarted{StepName: "model"}))
	records, err := l.ReadTo(ctx, run, 99)
	if !errors.Is(err, stream.ErrUnavailable) || errors.Is(err, stream.ErrLogLost) || len(records) != 1 {
		t.Errorf("got %d records, then %v; want one and ErrUnavailable", len(records), err)
	}
}
