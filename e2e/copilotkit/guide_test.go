package copilotkit

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// followGuide: the server and the page of the guide work as written. Without the server, the page
// shows an error.
func followGuide(t *testing.T, f kit.FrontEnd, pages string) {
	t.Helper()
	question, answer := kit.Marked("What is 7*7?"), kit.Marked("It is 49.")
	answerAfterCall(t, question, kit.ModelCall{ID: "call_a", Name: "calculate", Arguments: `{"expression":"7*7"}`}, answer)
	server := f.StartServer(t, strings.NewReplacer(
		"http://127.0.0.1:8080", kit.Shared.URL(""), `"public"`, `"`+pages+`"`,
		`app.listen(4000, "127.0.0.1");`, `const server = app.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ url: "http://127.0.0.1:" + server.address().port })));`,
	).Replace(guideBlock(t, "copilotkit", "js")))

	tab := kit.OpenCopilotKit(t, server.Site+"/guide.html#"+newThread())
	say(tab, question)
	tab.Click("text=Approve")
	tab.Await(assistant, answer)
	tab.Await(".sum", "7*7 = 49")
	tab.Reload()
	tab.Await(assistant, answer)
	tab.Await(".sum", "7*7 = 49")

	tab.Tolerate("") // the page reports in the console too that the runtime is not there
	server.Kill()
	say(tab, question)
	tab.Await("[role=alert]", "Reload")
}

// guideBlock returns the first block of a guide in a language.
func guideBlock(t *testing.T, guide, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "guides", guide+".md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$").FindSubmatch(text)
	if block == nil {
		t.Fatalf("docs/guides/%s.md: block of %s: got none, want one", guide, language)
	}
	return string(block[1])
}
