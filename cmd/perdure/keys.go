package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/encryption"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/connect"
)

// keysCommand returns the command "perdure keys".
func keysCommand(environ []string) *cobra.Command {
	keys := &cobra.Command{Use: "keys", Short: "Manage the encryption keys of the log"}
	keys.AddCommand(&cobra.Command{
		Use:   "rotate operator|tenants|threads",
		Short: "Replace the encryption keys of a level",
		Long: `Replace the encryption keys of a level, while all processes work:

- operator: encrypt the keys of all tenants with the first key in PERDURE_ENCRYPTION_KEYS
- tenants: give every tenant a new key, and encrypt the keys of all threads with it
- threads: give every thread a new key, for what is written from now on

The command uses NATS, not the API. It reads the variables of a worker: PERDURE_ENCRYPTION_KEYS, PERDURE_STREAM, NATS_URL
and the other variables of NATS. If it is interrupted, run it again.`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"operator", "tenants", "threads"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return rotateKeys(cmd, args[0], environ)
		},
	})
	return keys
}

// rotateKeys replaces the keys of a level, and prints how many it has replaced.
func rotateKeys(cmd *cobra.Command, level string, environ []string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	cfg, err := config.Load(config.Worker, nil, environ, out)
	if err != nil {
		return err
	}
	if cfg.EncryptionKeys() == "" {
		return &config.VariableError{Name: config.EncryptionKeysName, Err: errors.New("must be set")}
	}
	nc, err := connect.DialNATS(ctx, cfg, "perdure-keys", slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
	if err != nil {
		return err
	}
	defer nc.Close()
	keys, err := connect.OpenKeys(ctx, cfg, nc)
	if err != nil {
		return err
	}
	report, err := rotate(ctx, keys, level)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, report)
	return nil
}

// rotate replaces the keys of a level, and describes what it has done.
func rotate(ctx context.Context, keys *encryption.Keys, level string) (string, error) {
	switch level {
	case "operator":
		n, err := keys.RotateOperator(ctx)
		return fmt.Sprintf("The keys of %d tenants are encrypted with the first key.", n), err
	case "tenants":
		tenants, threads, err := keys.RotateTenants(ctx)
		return fmt.Sprintf("%d tenants have a new key, with which the keys of %d threads are encrypted.", tenants, threads), err
	default:
		n, err := keys.RotateThreads(ctx)
		return fmt.Sprintf("%d threads have a new key.", n), err
	}
}
