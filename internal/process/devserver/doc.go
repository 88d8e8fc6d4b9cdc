// Package devserver runs a Temporal server and a NATS server inside this process, over one data
// directory:
//
//	<data>/lock         held by the process that uses the directory
//	<data>/format       version of the layout; marks the directory as Perdure's
//	<data>/temporal.db  Temporal: histories, queues, visibility (SQLite, WAL)
//	<data>/nats/        JetStream: the log
//
//	s, err := devserver.Start(ctx, devserver.Options{Data: ".perdure", TemporalPort: 7233})
//	if err != nil { … }
//	defer s.Stop(context.Background())
//	c, err := client.DialContext(ctx, client.Options{
//		HostPort: s.TemporalAddress(), Namespace: s.Namespace(),
//	})
//	n, err := devserver.FailOrphans(ctx, c, s.Orphans())
//
// Rules:
//   - Both servers listen on 127.0.0.1 and require no credentials. They are for development, tests
//     and single-node use, never for a network.
//   - Data that either server has acknowledged survives kill -9. A loss of power may take the last
//     100 ms of the log and the last transactions of the database.
//   - One process owns the directory. So every activity and workflow task that the database has as
//     started ran in a process that is dead, see [FailOrphans].
//   - The import is heavy: some 200 modules, and minutes for the first build. Only the program with
//     the embedded servers and end-to-end tests may import this package.
package devserver
