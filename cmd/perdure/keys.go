package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/encryption"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/connect"
	"github.com/perdure/perdure/internal/process/telemetry"
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
and the other variables of NATS and OpenTelemetry. With the roles of deploy/nats, it needs NATS_USER=perdure-admin. If it
is interrupted, run it again.`,
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
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	// Sends the entry of the rotation to a collector. The writer must be closed before the shutdown.
	tel, err := telemetry.Start(ctx, "perdure-keys", cfg.Getenv)
	if err != nil {
		return err
	}
	defer tel.Shutdown(context.WithoutCancel(ctx), logger)
	nc, err := connect.DialNATS(ctx, cfg, "perdure-keys", logger)
	if err != nil {
		return err
	}
	defer nc.Close()
	log, keys, err := connect.OpenKeys(ctx, cfg, nc)
	if err != nil {
		return err
	}
	trail, err := store.Open(ctx, log)
	if err != nil {
		return err
	}
	writer, err := store.NewWriter(trail)
	if err != nil {
		return err
	}
	defer writer.Close()
	report, details, rotating := rotate(ctx, keys, level)
	if err := errors.Join(rotating, recordRotation(ctx, writer, details, rotating)); err != nil {
		return err
	}
	fmt.Fprintln(out, report)
	return nil
}

// recordRotation writes the entry of a rotation to the audit log of the platform, also if the rotation
// has failed or was interrupted: then it may have replaced some of the keys.
func recordRotation(ctx context.Context, writer *store.Writer, details map[string]string, rotating error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	entry := audit.Entry{Action: audit.RotateKeys, Outcome: audit.Accepted, Details: details}
	if rotating != nil {
		entry.Outcome = audit.Unknown
	}
	if err := writer.Record(ctx, store.Platform, entry); err != nil {
		return fmt.Errorf("the audit log may have no entry of the rotation, run the command again: %w", err)
	}
	return nil
}

// recordTimeout bounds the writing of the entry of a rotation.
const recordTimeout = 10 * time.Second

// rotate replaces the keys of a level. It returns what it has done, for the user, and as details of
// the audit log: with the ID of the operator's key that encrypts, and numbers of keys.
func rotate(ctx context.Context, keys *encryption.Keys, level string) (report string, details map[string]string, err error) {
	details = map[string]string{"level": level, "operatorKey": keys.Operator()}
	var tenants, threads int
	switch level {
	case "operator":
		tenants, err = keys.RotateOperator(ctx)
		details["tenants"] = strconv.Itoa(tenants)
		report = fmt.Sprintf("The keys of %d tenants are encrypted with the first key.", tenants)
	case "tenants":
		tenants, threads, err = keys.RotateTenants(ctx)
		details["tenants"], details["threads"] = strconv.Itoa(tenants), strconv.Itoa(threads)
		report = fmt.Sprintf("%d tenants have a new key, with which the keys of %d threads are encrypted.", tenants, threads)
	default:
		threads, err = keys.RotateThreads(ctx)
		details["threads"] = strconv.Itoa(threads)
		report = fmt.Sprintf("%d threads have a new key.", threads)
	}
	return report, details, err
}
