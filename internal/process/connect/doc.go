// Package connect opens the connections of a process to NATS, which has the log, and to Temporal.
//
//	c, err := connect.Dial(ctx, cfg, "perdure-api", logger)
//	if err != nil { return err }
//	defer c.Close()
//
// Rules:
//   - Servers may start later than the process. The first connection is repeated until
//     Config.ConnectTimeout has passed, and each failure is logged. An error that a repetition
//     cannot resolve fails at once.
//   - A connection that was established reconnects by itself as long as the process lives.
package connect
