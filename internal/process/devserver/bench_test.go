//go:build unix

package devserver

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// BenchmarkStart measures a start over an existing directory in a warm process. The first start of
// a process takes about four times as long.
func BenchmarkStart(b *testing.B) {
	o := Options{Data: b.TempDir()}
	for b.Loop() {
		s, err := Start(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkWorkflow runs workflows of one activity and one local activity to completion, first
// sequentially, then sixteen concurrently. It reports the CPU time of server, client and worker
// together.
func BenchmarkWorkflow(b *testing.B) {
	s, err := Start(b.Context(), Options{Data: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Stop(context.WithoutCancel(b.Context()))
	c, err := dial(b.Context(), s)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	w := worker.New(c, taskQueue, worker.Options{})
	w.RegisterWorkflow(shortWorkflow)
	w.RegisterActivity(noopActivity)
	if err := w.Start(); err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	for _, eager := range []bool{true, false} {
		for _, parallelism := range []int{1, 16} {
			b.Run(fmt.Sprintf("eager=%t/parallel=%d", eager, parallelism), func(b *testing.B) {
				before := cpuTime(b)
				runShortWorkflows(b, c, eager, parallelism)
				b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// runShortWorkflows runs workflows in parallel.
func runShortWorkflows(b *testing.B, c client.Client, eager bool, parallelism int) {
	b.Helper()
	slots := make(chan error, parallelism)
	for range parallelism {
		slots <- nil
	}
	take := func() {
		if err := <-slots; err != nil {
			b.Error(err)
		}
	}
	for i := range b.N {
		take()
		o := workflowOptions(fmt.Sprintf("thread/b/%d", i))
		o.EnableEagerStart = eager
		go func() {
			run, err := c.ExecuteWorkflow(b.Context(), o, shortWorkflow)
			if err == nil {
				err = run.Get(b.Context(), nil)
			}
			slots <- err
		}()
	}
	for range parallelism {
		take()
	}
}

// shortWorkflow executes an activity and a local activity.
func shortWorkflow(ctx workflow.Context) error {
	remote := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	if err := workflow.ExecuteActivity(remote, noopActivity).Get(ctx, nil); err != nil {
		return err
	}
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
	return workflow.ExecuteLocalActivity(local, noopActivity).Get(ctx, nil)
}

// noopActivity does nothing.
func noopActivity(context.Context) error { return nil }

// cpuTime returns the CPU time of the process.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
