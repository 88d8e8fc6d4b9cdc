// Command store is a store for the order example.
//
//	POST /reservations                   {"article"}: reserves it
//	POST /reservations/{number}/release  releases a reservation
//	POST /payments                       {"reservation", "amount"}: charges it
//	POST /payments/{number}/refund       refunds a payment
//	POST /parcels                        {"reservation", "to"}: ships it, but not to the Moon
//	GET  /journal                        all executed actions, in order
//	GET  /journal/{reservation}          the executed actions of one reservation
//
// The store executes each Idempotency-Key once. It records its actions in a file, so that they
// survive a kill of the store.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// defaultJournal is outside of the data directory of perdure dev, because perdure dev refuses a
// directory that has other files.
const defaultJournal = ".perdure-store.jsonl"

func main() {
	addr := flag.String("addr", "127.0.0.1:8091", "address; port 0 = any free port")
	file := flag.String("journal", defaultJournal, "file of the executed actions")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *addr, *file, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "store:", err)
		os.Exit(1)
	}
}

// run serves the store with the journal of a file until ctx ends.
func run(ctx context.Context, addr, file string, out io.Writer) (err error) {
	j, err := openJournal(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	s, err := newStore(j)
	if err != nil {
		return err
	}
	return serve(ctx, addr, s.routes(), out)
}

// serve listens on addr, and serves until ctx ends.
func serve(ctx context.Context, addr string, routes http.Handler, out io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Fprintf(out, "The store is open: http://%s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
