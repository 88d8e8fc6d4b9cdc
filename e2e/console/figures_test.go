package console

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// measure runs TestFigures.
var measure = flag.Bool("measure", false, "measure the console for docs/internals/performance.md")

// Amounts of TestFigures.
const (
	loads        = 10
	keys         = 200
	frames       = 300
	floodedSteps = 4
	floodedWords = 3_000 // in a step
	streamedFor  = time.Hour
	tickedWords  = 2_000 // in an answer of the ticker, one each 20 ms
)

// tickers streams about 50 events a second in ticker, and as many as it can in flood.
const tickers = `
name: ticker
model: scripted/ticker
---
name: flood
model: scripted/flood
tools: [calculate]
---
kind: script
name: ticker
pace: 20ms
turns: [{steps: [{say: "%s"}]}]
---
kind: script
name: flood
pace: 0s
turns: [{steps: [%s{say: "%[3]s"}]}]
`

// TestFigures measures the console, and prints the figures of docs/internals/performance.md.
func TestFigures(t *testing.T) {
	if !*measure {
		t.Skip("it takes more than an hour: run it with -measure -v -timeout 90m")
	}
	step := fmt.Sprintf(`{say: "%s", calls: [{tool: calculate, arguments: {expression: 12*7}}]}, `, words(floodedWords))
	p := kit.SetupWith(t, fmt.Sprintf(tickers, words(tickedWords), strings.Repeat(step, floodedSteps-1), words(floodedWords)))
	for name, measure := range map[string]func(*testing.T, *kit.Perdure){"Loads": measureLoads, "Keys": measureKeys, "Scrolling": measureScrolling, "Memory": measureMemory} {
		t.Run(name, func(t *testing.T) { measure(t, p) })
	}
}

func words(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }

// firstLoad is what a window measured when its first screen was usable.
type firstLoad struct {
	Milliseconds float64
	Files, Bytes int
}

// loadInWindow opens the console in a window, and closes it when a message can be typed and a frame
// has shown that. Only the documents of the console can open one that they may look into.
const loadInWindow = `(async () => {
	const opened = window.open("/console/chat/ticker");
	while (!opened.document.querySelector("textarea[aria-label=Message]:enabled")) await new Promise((later) => setTimeout(later, 1));
	await new Promise((shown) => opened.requestAnimationFrame(() => setTimeout(shown)));
	const milliseconds = opened.performance.now();
	const files = opened.performance.getEntriesByType("resource").filter(({ name }) => name.includes("/console/"));
	const page = opened.performance.getEntriesByType("navigation");
	opened.close();
	return { milliseconds, files: files.length, bytes: [...page, ...files].reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0) };
})()`

// measureLoads measures the first load without and with a cache of the browser.
func measureLoads(t *testing.T, p *kit.Perdure) {
	t.Helper()
	var cold, warm []float64
	var size firstLoad
	for range loads {
		tab := kit.OpenTab(t, p.URL("/console/icon.svg"))
		tab.Evaluate(loadInWindow, &size)
		cold = append(cold, size.Milliseconds)
		tab.Close()
	}
	tab := kit.OpenTab(t, p.URL("/console/icon.svg"))
	for range loads + 1 {
		var load firstLoad
		tab.Evaluate(loadInWindow, &load)
		warm = append(warm, load.Milliseconds)
	}
	tab.Close()
	t.Logf("first load: %d files, %.0f KB with gzip; usable after %s cold, %s warm", size.Files, float64(size.Bytes)/1e3, quantiles(cold), quantiles(warm[1:]))
}

// measureKeys measures the time from a key to the next frame while events arrive.
func measureKeys(t *testing.T, p *kit.Perdure) {
	t.Helper()
	tab := kit.OpenTab(t, p.URL("/console/chat/ticker"))
	say(tab, "Go")
	tab.Await("[data-kind=text]", "word word")
	tab.Click(message)
	tab.Evaluate(`void (window.latencies = [], document.addEventListener("keydown", ({ timeStamp }) => requestAnimationFrame(() => {
		const { port1, port2 } = new MessageChannel();
		port1.onmessage = () => latencies.push(performance.now() - timeStamp);
		port2.postMessage(0);
	}), true))`, nil)
	for range keys {
		tab.Press("x")
	}
	tab.Await("[data-kind=running]", "") // the stream has not ended
	var latencies []float64
	tab.Evaluate("latencies", &latencies)
	tab.Click("role=button[name='Stop the run']")
	tab.AwaitGone("[data-kind=running]")
	tab.Close()
	t.Logf("from a key to its frame, with 50 events per second: %s", quantiles(latencies))
}

// measureScrolling scrolls through more than 10,000 events of a run, more than a page in each frame.
func measureScrolling(t *testing.T, p *kit.Perdure) {
	t.Helper()
	p.Threads.Add("flooded")
	resp, err := p.Post(t.Context(), "/v1/agents/flood/runs", map[string]any{
		"threadId": "flooded", "runId": "r1", "protocolVersion": "1.0",
		"messages": []map[string]any{{"id": "m1", "role": "user", "content": "Go"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("run: got %s, %v", resp.Status, err)
	}
	tab := kit.OpenTab(t, p.URL("/console/threads/flooded/runs/r1?tab=events&each=on"))
	tab.Await("role=status >> text=/^1[0-9],[0-9]{3} events$/", "")
	var times []float64
	tab.Evaluate(fmt.Sprintf(`(async () => {
		const list = document.querySelector("[aria-label='Events of the run']");
		const step = (list.scrollHeight - list.clientHeight) / %[1]d;
		const times = [];
		let last = await new Promise(requestAnimationFrame);
		for (let i = 1; i <= %[1]d; i++) {
			list.scrollTop = i * step;
			const now = await new Promise(requestAnimationFrame);
			times.push(now - last);
			last = now;
		}
		return times;
	})()`, frames), &times)
	tab.Close()
	t.Logf("frames while scrolling more than 10,000 events: %s", quantiles(times))
}

// measureMemory has an agent write 50 words a second for an hour, in one thread.
func measureMemory(t *testing.T, p *kit.Perdure) {
	t.Helper()
	tab := kit.OpenTab(t, p.URL("/console/chat/ticker"))
	runs := 0
	run := func() {
		say(tab, "Go")
		runs++
		tab.Await("[data-kind=running]", "")
		tab.AwaitGone("[data-kind=running]")
	}
	run()
	before := tab.HeapSize()
	began := time.Now()
	for time.Since(began) < streamedFor {
		run()
	}
	t.Logf("heap of the page: %.1f MB after %d words, %.1f MB after %d words in %s", float64(before)/1e6, tickedWords, float64(tab.HeapSize())/1e6, runs*tickedWords, time.Since(began).Round(time.Second))
	tab.Close()
}

// quantiles returns the median and the 95th percentile of durations in milliseconds.
func quantiles(values []float64) string {
	slices.Sort(values)
	return fmt.Sprintf("p50 %.0f ms, p95 %.0f ms of %d", values[len(values)/2], values[len(values)*95/100], len(values))
}
