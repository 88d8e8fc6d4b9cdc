package activities_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
)

// newActivityEnv returns an environment for activities.
func newActivityEnv() *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	return suite.NewTestActivityEnvironment()
}

// history records all data that Temporal receives: payloads, and messages of failures. It is safe
// for concurrent use.
type history struct {
	converter.DataConverter
	mu   sync.Mutex
	text strings.Builder
}

// record adds a text to the history.
func (h *history) record(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.WriteString(text + "\n")
}

func (h *history) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// ToPayload implements [converter.DataConverter].
func (h *history) ToPayload(value any) (*common.Payload, error) {
	p, err := h.DataConverter.ToPayload(value)
	h.record(string(p.GetData()))
	return p, err
}

// ToPayloads implements [converter.DataConverter].
func (h *history) ToPayloads(values ...any) (*common.Payloads, error) {
	all, err := h.DataConverter.ToPayloads(values...)
	for _, p := range all.GetPayloads() {
		h.record(string(p.GetData()))
	}
	return all, err
}

// buffer is a bytes.Buffer that is safe for concurrent use.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// errorRecorder records the errors of all activities, also of local ones, which the listeners of the
// test environment do not get.
type errorRecorder struct {
	interceptor.WorkerInterceptorBase
	history *history
}

// InterceptActivity implements [interceptor.WorkerInterceptor].
func (r *errorRecorder) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &recordingInbound{interceptor.ActivityInboundInterceptorBase{Next: next}, r.history}
}

// recordingInbound is the errorRecorder of one activity.
type recordingInbound struct {
	interceptor.ActivityInboundInterceptorBase
	history *history
}

// ExecuteActivity implements [interceptor.ActivityInboundInterceptor].
func (r *recordingInbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	answer, err := r.Next.ExecuteActivity(ctx, in)
	if err != nil {
		r.history.record(err.Error())
	}
	return answer, err
}
