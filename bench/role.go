package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// serve returns the main function of a role: its first line of output is its address, and it exits
// when its input closes, so that it never outlives the process that started it.
func serve(ctx context.Context, h http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h} //nolint:gosec // no header timeout: the only client is the bench
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Printf("http://%s\n", listener.Addr()) //nolint:forbidigo // it is what the other side waits for
	select {
	case <-abandoned():
	case <-ctx.Done():
	case err := <-ended:
		return err
	}
	err = server.Close()
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// abandoned is closed when this process's input closes.
func abandoned() <-chan struct{} {
	closed := make(chan struct{})
	go func() { // exits with the process at the latest
		defer close(closed)
		_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
	}()
	return closed
}
