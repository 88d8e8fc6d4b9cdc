package llmtest

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/llm"
)

// benchmarkDeltas is the number of text deltas in the response of [Benchmark]. It is large, so that
// the request has no part in the figures.
const benchmarkDeltas = 1000

// Benchmark measures what p needs to read a response, without the network. It reports the text
// deltas per second and the time for each of them. The allocations are those of a response with
// benchmarkDeltas of them.
func Benchmark(b *testing.B, p Provider) {
	b.Helper()
	encoder := p.NewEncoder()
	var body strings.Builder
	body.WriteString(encoder.Begin())
	for range benchmarkDeltas {
		body.WriteString(encoder.Text(`" token"`))
	}
	body.WriteString(encoder.Finish(llm.FinishStop, llm.Usage{Input: number(5), Output: number(benchmarkDeltas), Total: number(5 + benchmarkDeltas)}))
	model := p.New(Endpoint{BaseURL: "http://localhost", APIKey: apiKey, Client: &http.Client{Transport: replay(body.String())}})

	b.ReportAllocs()
	deltas := 0
	for b.Loop() {
		for chunk, err := range model.Stream(b.Context(), request()) {
			if err != nil {
				b.Fatal(err)
			}
			if _, ok := chunk.(llm.TextDelta); ok {
				deltas++
			}
		}
	}
	if deltas != b.N*benchmarkDeltas {
		b.Fatalf("got %d text deltas, want %d", deltas, b.N*benchmarkDeltas)
	}
	b.ReportMetric(float64(deltas)/b.Elapsed().Seconds(), "chunks/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(deltas), "ns/chunk")
}

// replay is an HTTP transport that answers each request with one event stream.
type replay string

// RoundTrip implements [http.RoundTripper].
func (r replay) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(string(r))), Request: req,
	}, nil
}
