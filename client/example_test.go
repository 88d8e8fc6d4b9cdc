package client_test

import (
	"context"
	"fmt"
	"os"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
)

// Example says something to an agent, and approves what it asks for.
func Example() {
	ctx := context.Background()
	c, err := client.New(client.Config{URL: "http://127.0.0.1:8080", Token: os.Getenv("PERDURE_TOKEN")})
	if err != nil {
		fmt.Println(err)
		return
	}
	input := agui.RunAgentInput{ThreadID: "thread-1", RunID: "run-1", ProtocolVersion: agui.Version}
	input.Messages = []agui.Message{{ID: "m1", Role: agui.RoleUser, Content: agui.TextContent("Please refund order A-1001.")}}
	for event, err := range c.Run(ctx, "refund", input) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch e := event.Event.(type) {
		case *agui.TextMessageContent:
			fmt.Print(e.Delta)
		case *agui.RunFinished:
			if e.Outcome == nil {
				return
			}
			for _, i := range e.Outcome.Interrupts {
				results, err := c.Decide(ctx, client.Decision{ThreadID: input.ThreadID, ID: i.ID, Decision: client.Approve})
				fmt.Println(results, err)
			}
		}
	}
}
