package devserver

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/common/dynamicconfig"
)

func envInt(k string, d int) int {
	if v := os.Getenv(k); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			panic(err)
		}
		return n
	}
	return d
}

func cpu() time.Duration {
	var ru syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

func trivial(ctx workflow.Context, n int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	if err := workflow.ExecuteActivity(ctx, act, n).Get(ctx, nil); err != nil {
		return err
	}
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: 10 * time.Second})
	return workflow.ExecuteLocalActivity(ctx, act, n).Get(ctx, nil)
}

func act(ctx context.Context, n int) (int, error) { return n, nil }

func expTuning() tuning {
	t := defaultTuning()
	t.shards = int32(envInt("SHARDS", int(t.shards)))
	t.conns = envInt("CONNS", t.conns)
	for _, kv := range strings.Fields(os.Getenv("PRAGMAS")) {
		k, v, _ := strings.Cut(kv, "=")
		t.pragmas[k] = v
	}
	if os.Getenv("NODYN") != "" {
		clear(t.dynamic)
	}
	for _, kv := range strings.Fields(os.Getenv("DYN")) {
		k, v, _ := strings.Cut(kv, "=")
		var x any = v
		if n, err := strconv.Atoi(v); err == nil {
			x = n
		} else if b, err := strconv.ParseBool(v); err == nil {
			x = b
		} else if d, err := time.ParseDuration(v); err == nil {
			x = d
		}
		t.dynamic[dynamicconfig.MakeKey(k)] = x
	}
	return t
}

func pct(d []time.Duration, p float64) time.Duration {
	sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
	return d[int(float64(len(d)-1)*p)]
}

func TestExp(t *testing.T) {
	if os.Getenv("EXP") == "" {
		t.Skip()
	}
	ctx := context.Background()
	dir := os.Getenv("DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	t0 := time.Now()
	s, err := start(ctx, Options{Data: dir}, expTuning())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("start %v goroutines %d cpu %v\n", time.Since(t0), runtime.NumGoroutine(), cpu())
	defer func() {
		t0 := time.Now()
		s.Stop(ctx)
		fmt.Printf("stop %v\n", time.Since(t0))
	}()
	n := envInt("N", 0)
	c, err := client.Dial(client.Options{HostPort: s.TemporalAddress(), Logger: sdklog.NewStructuredLogger(discard)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if idle := envInt("IDLE", 0); idle > 0 {
		time.Sleep(3 * time.Second)
		c0 := cpu()
		var ms runtime.MemStats
		time.Sleep(time.Duration(idle) * time.Second)
		runtime.ReadMemStats(&ms)
		fmt.Printf("idle cpu %.2f%% heap %d MB sys %d MB\n", float64(cpu()-c0)/float64(time.Duration(idle)*time.Second)*100, ms.HeapAlloc>>20, ms.Sys>>20)
	}
	if n == 0 {
		return
	}
	w := worker.New(c, "q", worker.Options{})
	w.RegisterWorkflow(trivial)
	w.RegisterActivity(act)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	run := func(n, par int, eager bool, prefix string) {
		var mu sync.Mutex
		var starts, ends []time.Duration
		c0, t0 := cpu(), time.Now()
		var wg sync.WaitGroup
		sem := make(chan int, n)
		for i := range n {
			sem <- i
		}
		close(sem)
		for range par {
			wg.Go(func() {
				for i := range sem {
					t0 := time.Now()
					r, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: fmt.Sprintf("thread/%s/%d", prefix, i), TaskQueue: "q", EnableEagerStart: eager, WorkflowTaskTimeout: 5 * time.Second}, trivial, i)
					if err != nil {
						t.Error(err)
						return
					}
					d1 := time.Since(t0)
					if err := r.Get(ctx, nil); err != nil {
						t.Error(err)
						return
					}
					d2 := time.Since(t0)
					if d2 > time.Second {
						fmt.Printf("  slow %s/%d start %v end %v\n", prefix, i, d1, d2)
						if os.Getenv("HIST") != "" {
							it := c.GetWorkflowHistory(ctx, r.GetID(), r.GetRunID(), false, 1)
							for it.HasNext() {
								e, _ := it.Next()
								fmt.Println("   ", e.EventTime.AsTime().Format("05.000"), e.EventType)
							}
						}
					}
					mu.Lock()
					starts, ends = append(starts, d1), append(ends, d2)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		el := time.Since(t0)
		fmt.Printf("%-14s n %d par %d: start p50 %.1f p95 %.1f  end p50 %.1f p95 %.1f ms  %.0f/s  cpu/wf %.2f ms\n", prefix, n, par,
			pct(starts, .5).Seconds()*1e3, pct(starts, .95).Seconds()*1e3, pct(ends, .5).Seconds()*1e3, pct(ends, .95).Seconds()*1e3, float64(n)/el.Seconds(), (cpu()-c0).Seconds()*1e3/float64(n))
	}
	run(100, 8, true, "warm")
	ns := envInt("NS", 200)
	run(ns, 1, true, "seq-eager")
	run(ns, 1, false, "seq-plain")
	if p := os.Getenv("PROF"); p != "" {
		f, _ := os.Create(p)
		pprof.StartCPUProfile(f)
		defer f.Close()
	}
	run(n, 16, true, "par-eager")
	if os.Getenv("PROF") != "" {
		pprof.StopCPUProfile()
	}
}
