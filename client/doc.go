// Package client is a client of Perdure's HTTP API.
//
//	c, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
//	…
//	input := agui.RunAgentInput{
//		ThreadID: "thread-1", RunID: "run-1", ProtocolVersion: agui.Version, Messages: …,
//	}
//	for event, err := range c.Run(ctx, "demo", input) {
//		…
//	}
//
// Streams reconnect: after a lost connection they continue with the next event. If that is
// impossible, they end with an error, never with a gap. Requests with an unknown outcome are sent
// again; the server processes them once.
//
// An error is a [*Problem] if the server has refused the request, an [*UnreachableError] if it
// could not be reached for [Config.RetryWindow], or that of the context.
package client
