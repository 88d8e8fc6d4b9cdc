// Command perdure runs durable AG-UI agents. "perdure dev" runs all parts in one process; the other
// commands use the API of a running node.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli"
	"github.com/perdure/perdure/internal/process/memory"
	"github.com/perdure/perdure/internal/process/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)          // a second signal ends the process at once
	if err := memory.Hide(); err != nil { // also for the token of the other commands
		fmt.Fprintln(os.Stderr, "perdure:", err)
		os.Exit(1)
	}
	os.Exit(cli.Execute(ctx, command(os.Environ())))
}

// command returns the command line with all commands. environ has the form of os.Environ.
func command(environ []string) *cobra.Command {
	root := &cobra.Command{Use: "perdure", Short: "Durable AG-UI agents", Version: version.Read().Version}
	root.SetVersionTemplate(version.Read().Text("perdure"))
	root.AddCommand(devCommand(environ), keysCommand(environ))
	root.AddCommand(cli.Commands(environ)...)
	return root
}
