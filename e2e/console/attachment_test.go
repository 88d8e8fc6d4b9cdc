package console

import (
	"encoding/base64"
	"fmt"
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// transfer dispatches an event that gives an element a file.
const transfer = `{
	const data = new DataTransfer();
	data.items.add(new File([Uint8Array.from(atob(%q), (byte) => byte.charCodeAt(0))], %q, { type: "image/png" }));
	const target = document.querySelector(%q);
	const options = { bubbles: true, cancelable: true };
	%s
}`

// testAttachments: a person pastes an image and drops another one, removes one of them, and sends
// the rest. A file that is too large is refused by name.
func testAttachments(t *testing.T, p *kit.Perdure) {
	tab := kit.OpenTab(t, p.URL("/console/chat/echo"))
	tab.Await(message, "")
	picture, err := os.ReadFile(pixelFile(t))
	if err != nil {
		t.Fatal(err)
	}
	pixel := base64.StdEncoding.EncodeToString(picture)
	const files = "[aria-label='Attached files']"
	tab.Evaluate(fmt.Sprintf(transfer, pixel, "pasted.png", message, `target.dispatchEvent(new ClipboardEvent("paste", { ...options, clipboardData: data }));`), nil)
	tab.Await(files, "pasted.png")
	tab.Evaluate(fmt.Sprintf(transfer, pixel, "dropped.png", "form[aria-label='New message']", `target.dispatchEvent(new DragEvent("dragover", { ...options, dataTransfer: data }));`), nil)
	tab.Await("[data-dropping]", "")
	tab.WantAccessible()
	tab.Evaluate(fmt.Sprintf(transfer, pixel, "dropped.png", "form[aria-label='New message']", `target.dispatchEvent(new DragEvent("drop", { ...options, dataTransfer: data }));`), nil)
	tab.Await(files, "dropped.png")
	tab.AwaitGone("[data-dropping]")

	tab.Evaluate(`{
		const data = new DataTransfer();
		data.items.add(new File([new Uint8Array(105_000_000)], "large.bin"));
		document.querySelector("`+message+`").dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: data }));
	}`, nil)
	tab.Await("[role=alert]", "large.bin is too large")
	tab.Click("role=button[name='Remove pasted.png']")
	say(tab, "Look at this")
	tab.Await(transcript+" img[alt='dropped.png']", "")
	tab.Await("[data-kind=text]", "I see it.")
	tab.AwaitGone(files)
	tab.AwaitGone(transcript + " img[alt='pasted.png']")
}
