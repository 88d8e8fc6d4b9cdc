package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// roles are the roles that this program can have when it starts itself as another process.
var roles = map[string]func(context.Context) error{
	"model": serveModel,
	"proxy": serveProxy,
	"plain": servePlain,
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) == 1 && roles[args[0]] != nil {
		return roles[args[0]](ctx)
	}
	p, err := parsePlan(args, progress)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	b, err := prepare(ctx, p, progress)
	if err != nil {
		return err
	}
	defer b.close()
	r, err := b.measureAll(ctx)
	if err != nil {
		return err
	}
	fmt.Fprint(out, r.markdown())
	if p.results == "" {
		return nil
	}
	return r.save(p.results)
}
