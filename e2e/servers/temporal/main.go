// Command temporal is Temporal on PostgreSQL. Tests kill it as a process.
//
//	temporal -postgres HOST:PORT -user U -port P -config FILE
//
// It creates databases, schema and namespace if they are missing. It prints {"temporal": …,
// "namespace": …} when the namespace is usable, and exits when its input ends.
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

	"go.temporal.io/server/temporal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "temporal:", err)
		os.Exit(1)
	}
}

// settings are the values of the flags.
type settings struct {
	postgres, user, dynamicConfig string
	port                          int
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("temporal", flag.ContinueOnError)
	flags.StringVar(&s.postgres, "postgres", "", "host:port of PostgreSQL")
	flags.StringVar(&s.user, "user", "", "who we are there")
	flags.IntVar(&s.port, "port", 0, "port of the frontend; the other services have the next three")
	flags.StringVar(&s.dynamicConfig, "config", "", "file with dynamic configuration")
	return s, flags.Parse(args)
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if err := s.setUpSchema(); err != nil {
		return err
	}
	over := make(chan any)
	defer close(over)
	options, err := s.options(over)
	if err != nil {
		return err
	}
	server, err := temporal.NewServer(options...)
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := s.registerNamespace(ctx); err != nil {
		return err
	}
	where := map[string]string{"temporal": s.frontend(), "namespace": namespace}
	if err := json.NewEncoder(out).Encode(where); err != nil {
		return err
	}
	closed := make(chan struct{})
	go func() { // ends with the process, at the latest
		defer close(closed)
		_, _ = io.Copy(io.Discard, in)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
	return nil
}
