package agui_test

import (
	"fmt"

	"github.com/perdure/perdure/agui"
)

func Example() {
	var guard agui.Guard
	reducer := agui.NewReducer(nil, nil)
	for _, e := range []agui.Event{
		&agui.RunStarted{ThreadID: "t", RunID: "r", ProtocolVersion: agui.Version},
		&agui.TextMessageStart{MessageID: "m"},
		&agui.TextMessageContent{MessageID: "m", Delta: "Hello"},
		&agui.TextMessageEnd{MessageID: "m"},
		&agui.RunFinished{ThreadID: "t", RunID: "r"},
	} {
		if err := guard.Check(e); err != nil {
			fmt.Println(err)
		}
		frame, err := agui.Encode(e)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%s\n", frame)
		if err := reducer.Apply(e); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(reducer.Messages()[0].Content.Text())
	// Output:
	// {"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}
	// {"type":"TEXT_MESSAGE_START","messageId":"m"}
	// {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hello"}
	// {"type":"TEXT_MESSAGE_END","messageId":"m"}
	// {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
	// Hello
}
