// Package connect opens the two connections that every process has: to NATS, where the log is, and
// to Temporal.
//
//	c, err := connect.Dial(ctx, cfg, "perdure-api", logger)
//	if err != nil { return err }
//	defer c.Close()
//
// Rules:
//   - Servers may come up after us: the first connection is tried again, each failure is logged,
//     until Config.ConnectTimeout has passed. What trying again cannot mend fails at once.
//   - A connection that was there once comes back by itself, for as long as the process lives.
package connect
