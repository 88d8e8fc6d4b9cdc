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
	"time"
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

// result is what a bench prints and stores.
type result interface {
	markdown() string
	save(dir string) error
}

// run executes the program: in one of the roles, or as the bench, which prints its result to out and
// stores it.
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
	begun := time.Now()
	r, err := b.results(ctx)
	if err != nil {
		return err
	}
	b.tell("measured within %s", time.Since(begun).Round(time.Second))
	fmt.Fprint(out, r.markdown())
	if p.results == "" {
		return nil
	}
	return r.save(p.results)
}

// results measures this tree, or compares it with another commit.
func (b *bench) results(ctx context.Context) (result, error) {
	if b.base != "" {
		return b.pair(ctx)
	}
	return b.measureAll(ctx)
}
