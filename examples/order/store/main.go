// Command store is a store to order from, with all that was done in memory.
//
//	POST /reservations                   {"article"}: reserves it
//	POST /reservations/{number}/release  takes a reservation back
//	POST /payments                       {"reservation", "amount"}: charges it
//	POST /payments/{number}/refund       pays it back
//	POST /parcels                        {"reservation", "to"}: ships it, but not to the Moon
//	GET  /journal                        what was done, in its order
//
// The same Idempotency-Key does a thing once.
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

func main() {
	addr := flag.String("addr", "127.0.0.1:8091", "address; port 0 = any free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, *addr, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "store:", err)
		os.Exit(1)
	}
}

// serve keeps the store open until ctx ends.
func serve(ctx context.Context, addr string, out io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: newStore().routes(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Fprintf(out, "The store is open: http://%s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
