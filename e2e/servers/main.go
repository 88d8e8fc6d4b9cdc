// Command servers runs Temporal and NATS in one process for separate API and worker processes. The
// end-to-end tests, which kill it, and the bench use it.
//
//	servers [-temporal-port P] [-history-events N] [-reuse-interval D] DIR
//
// It prints {"temporal": …, "namespace": …, "nats": …} when both are ready, and exits when its
// input ends.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/perdure/perdure/internal/process/devserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	flags := flag.NewFlagSet("servers", flag.ContinueOnError)
	port := flags.Int("temporal-port", 0, "port of Temporal; 0 = any free one")
	events := flags.Int("history-events", 0, "events of a history after which a workflow is to continue as new; 0 = Temporal's default")
	reuse := flags.Duration("reuse-interval", 0, "Temporal's history.workflowIdReuseMinimalInterval, whose default is 1s")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("usage: servers [-temporal-port P] [-history-events N] [-reuse-interval D] DIR")
	}
	s, err := devserver.Start(ctx, devserver.Options{Data: flags.Arg(0), TemporalPort: *port, HistoryEvents: *events, ReuseInterval: *reuse})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx))) }()
	where := map[string]string{"temporal": s.TemporalAddress(), "namespace": s.Namespace(), "nats": s.NATSURL()}
	if err := json.NewEncoder(out).Encode(where); err != nil {
		return err
	}
	closed := make(chan struct{})
	go func() { // ends with the process at the latest
		defer close(closed)
		_, _ = io.Copy(io.Discard, in)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
	return nil
}
