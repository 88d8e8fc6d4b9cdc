// Package client is a small client of Perdure's HTTP API, for programs and for the command line.
//
//	c, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
//	…
//	input := agui.RunAgentInput{ThreadID: "thread-1", RunID: "run-1", ProtocolVersion: agui.Version, Messages: …}
//	for event, err := range c.Run(ctx, "demo", input) {
//		…
//	}
//
// Streams come back by themselves: when a connection is lost they go on with the very next event, and when
// that is not possible they end with an error, never with a gap. Requests whose outcome is unknown are
// sent again, which the server takes once.
//
// Errors are a [*Problem] if the server has refused, an [*UnreachableError] if it could not be asked for as
// long as [Config.Patience], or the context's.
package client
