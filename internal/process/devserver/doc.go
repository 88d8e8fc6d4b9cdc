// Package devserver runs a Temporal server and a NATS server inside this
// process, over one data directory:
//
//	<data>/lock         held by the one process that uses the directory
//	<data>/format       layout version; marks the directory as ours
//	<data>/temporal.db  Temporal: histories, queues, visibility (SQLite, WAL)
//	<data>/nats/        JetStream: the event log
//
//	s, err := devserver.Start(ctx, devserver.Options{Data: ".perdure", TemporalPort: 7233})
//	if err != nil { … }
//	defer s.Stop(context.Background())
//	c, err := client.DialContext(ctx, client.Options{HostPort: s.TemporalAddress(), Namespace: s.Namespace()})
//	n, err := devserver.FailOrphans(ctx, c, s.Orphans())
//
// Rules:
//
//   - Everything listens on 127.0.0.1 and nothing asks for credentials: this
//     serves development, tests and single-node use, never a network.
//   - What either server acknowledged survives kill -9. A loss of power may take
//     the last 100 ms of the log and the last transactions of the database.
//   - One process owns the directory. Whatever the database says is running when
//     it comes up was therefore running in a process that is dead: see
//     [FailOrphans].
//   - The import is heavy (some 200 modules, minutes of first build). Only the
//     program that offers the embedded servers and end-to-end tests may have it.
package devserver
