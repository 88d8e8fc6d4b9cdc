package agents_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
)

func TestRemote(t *testing.T) {
	t.Parallel()
	const file = "name: a\nremote:\n  url: https://h/a\n  headers: {Authorization: 'Bearer ${secret:T}'}\n"
	short, err := agents.Parse("a.yaml", []byte(file+"  interrupts: {expires: 1h}\n"))
	if err != nil {
		t.Fatal(err)
	}
	long, err := agents.Parse("a.yaml", []byte(file+"  protocol: auto\n  retry: never\n  forward: {state: true, tools: client, context: true}\n  interrupts: {quorum: 1, expires: 1h, onExpiry: reject}\n"))
	if err != nil || long.Revision() != short.Revision() {
		t.Errorf("with the defaults: %v, want the same revision", err)
	}
	raw, err := agents.Encode(short)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := agents.Decode(raw); err != nil || again.Revision() != short.Revision() {
		t.Errorf("decoded: %v, want the same revision", err)
	}
}

func TestRemoteMistakes(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		"remote: {}":                                         "remote.url",
		"remote: {url: ftp://h}":                             "remote.url",
		"remote: {url: 'https://u:p@h'}":                     "remote.url",
		"remote: {url: https://h, headers: {Accept: x}}":     "remote.headers",
		"remote: {url: https://h, protocol: '2.0'}":          "remote.protocol",
		"remote: {url: https://h, retry: always}":            "remote.retry",
		"remote: {url: https://h, forward: {tools: all}}":    "remote.forward.tools",
		"remote: {url: https://h, forward: {state: 1}}":      "remote.forward.state",
		"remote: {url: https://h, forward: {props: [a, a]}}": "remote.forward.props",
		"remote: {url: https://h, retries: 3}":               "remote.retries",
		"remote: {url: https://h, interrupts: {quorum: 9}}":  "remote.interrupts.quorum",
		"remote: {url: https://h, interrupts: {tools: [x]}}": "remote.interrupts.tools",

		"remote: {url: https://h, interrupts: {expires: 1h, onExpiry: skip}}": "remote.interrupts.onExpiry",
		"remote: {url: https://h}\nmodel: p/m":                                "model",
		"remote: {url: https://h}\nworkflow: w":                               "workflow",
		"remote: {url: https://h}\ninstructions: x":                           "instructions",
		"remote: {url: https://h}\ntools: [x]":                                "tools",
		"remote: https://h":                                                   "remote",
	} {
		if _, err := agents.Parse("a.yaml", []byte("name: a\n"+yaml+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a mistake of %s", yaml, err, want)
		}
	}
}
