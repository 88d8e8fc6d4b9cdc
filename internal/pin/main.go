// Command pin gives the images that files name the digests that their tags have in the registry:
// nats:2.15-alpine becomes nats:2.15-alpine@sha256:….
//
//	pin [-check] FILE|DIRECTORY...
//
// It reads Dockerfiles and YAML files. The digest of an image for several platforms is that of its
// index. With -check it changes nothing, and fails if an image has no digest or an old one.
// Credentials of registries are those of "docker login".
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
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run pins or checks the files of its arguments. If the digest of an image is unknown, it writes no
// file.
func run(ctx context.Context, args []string, out, usage io.Writer) error {
	flags := flag.NewFlagSet("pin", flag.ContinueOnError)
	flags.SetOutput(usage)
	check := flags.Bool("check", false, "change nothing, and fail if an image has no digest or an old one")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name the files or directories to pin")
	}
	files, err := findFiles(flags.Args())
	if err != nil {
		return err
	}
	if err := lookUp(ctx, files); err != nil {
		return err
	}
	if *check {
		return compare(files)
	}
	for _, f := range files {
		if err := f.pin(out); err != nil {
			return err
		}
	}
	return nil
}

// lookUp sets the current digests of all references.
func lookUp(ctx context.Context, files []*file) error {
	digests := registries{}
	var failures []error
	for _, f := range files {
		for i := range f.references {
			r := &f.references[i]
			var err error
			if r.current, err = digests.lookUp(ctx, r.name); err != nil {
				failures = append(failures, fmt.Errorf("%s:%d: %w", f.path, r.line, err))
			}
		}
	}
	return errors.Join(failures...)
}

// compare returns an error that names the references whose digests are not the current ones.
func compare(files []*file) error {
	var differences []error
	for _, f := range files {
		for _, r := range f.references {
			switch r.digest {
			case r.current:
			case "":
				differences = append(differences, fmt.Errorf(`%s:%d: %s has no digest: run "make pin"`, f.path, r.line, r.name))
			default:
				differences = append(differences, fmt.Errorf(`%s:%d: %s has the digest %s, the registry has %s: run "make pin"`, f.path, r.line, r.name, r.digest, r.current))
			}
		}
	}
	return errors.Join(differences...)
}
