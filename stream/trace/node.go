package trace

import (
	"strings"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
)

// node is a span under construction.
type node struct {
	span      Span
	parent    *node
	firstSeq  uint64
	lastSeq   uint64
	lastEnd   time.Time // the latest end of a child
	lastChild *node     // the child that began last
	attempts  []*attempt
	isListed  bool // the trace has it: it is not beyond MaxSpans
	isChanged bool // since the last call of Fold.Changed
	question  bool // an interrupt that is the question of a tool
}

// isOpen reports whether a span has not ended.
func (n *node) isOpen() bool { return n != nil && n.span.EndedAt == nil }

// addUsage sets the usage of a model call.
func (n *node) addUsage(u runs.Usage) {
	usage := tokenUsage(u)
	n.span.Usage = &usage
	if u.Cost != nil {
		n.span.Cost = &Cost{Amount: agents.Money(*u.Cost)}
	}
	if n.span.Model == "" && u.Model != "" {
		n.span.Model = strings.TrimPrefix(u.Provider+"/"+u.Model, "/")
	}
	if n.span.Name == "model" && n.span.Model != "" {
		n.span.Name = n.span.Model
	}
}

// tokenUsage returns a usage as AG-UI has it.
func tokenUsage(u runs.Usage) agui.TokenUsage {
	return agui.TokenUsage{
		Provider: u.Provider, Model: u.Model, InputTokens: u.Input, OutputTokens: u.Output, TotalTokens: u.Total,
		ReasoningTokens: u.Reasoning, CachedInputTokens: u.CachedInput, CacheWriteInputTokens: u.CacheWrite,
	}
}

// milliseconds returns a time as traces have it.
func milliseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
