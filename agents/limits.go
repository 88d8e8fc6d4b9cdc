package agents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// Limits bounds a run. In Go, a zero field has its default. In a file, a limit of zero is an error,
// because its author probably means unlimited.
type Limits struct {
	// Turns bounds the number of model calls. Default 30.
	Turns int `json:"turns,omitempty" yaml:"turns,omitempty"`

	// Tokens bounds the tokens of all model calls together, input and output. Default 400,000.
	Tokens int64 `json:"tokens,omitempty" yaml:"tokens,omitempty"`

	// Duration bounds the duration of the run; as text it is a Go duration such as 90s or 2h.
	// Default 2h.
	Duration time.Duration `json:"duration,omitempty" yaml:"duration,omitempty"`

	// ParallelTools bounds the tool calls of one turn, 1 to 512. Up to eight of them run
	// concurrently. Default 8.
	ParallelTools int `json:"parallelTools,omitempty" yaml:"parallelTools,omitempty"`

	// Wait bounds each wait for a time or an event; it is also the timeout of an event without one.
	// Default 30d, at most 366d.
	Wait time.Duration `json:"wait,omitempty" yaml:"wait,omitempty"`

	// Cost bounds the cost of all model calls together, in the currency of the worker's prices.
	// Then models without a price are not called. 0 = unlimited.
	Cost Money `json:"cost,omitempty" yaml:"cost,omitempty"`

	// Soft are the limits at which approvers are asked whether the run may continue; nil = none.
	// Inline agents of steps have none.
	Soft *SoftLimits `json:"soft,omitempty" yaml:"soft,omitempty"`
}

// DefaultLimits returns the limits of an agent without limits.
func DefaultLimits() Limits {
	return Limits{Turns: 30, Tokens: 400_000, Duration: 2 * time.Hour, ParallelTools: 8}
}

// orDefault replaces limits that are not set by the defaults.
func (l Limits) orDefault() Limits { return l.or(DefaultLimits()) }

// or replaces limits that are not set by those of other. It does not touch Soft.
func (l Limits) or(other Limits) Limits {
	if l.Turns == 0 {
		l.Turns = other.Turns
	}
	if l.Tokens == 0 {
		l.Tokens = other.Tokens
	}
	if l.Duration == 0 {
		l.Duration = other.Duration
	}
	if l.ParallelTools == 0 {
		l.ParallelTools = other.ParallelTools
	}
	if l.Wait == 0 {
		l.Wait = other.Wait
	}
	if l.Cost == 0 {
		l.Cost = other.Cost
	}
	return l
}

// The default of Limits.Wait, and its maximum.
const (
	defaultWait = 30 * 24 * time.Hour
	maxWait     = 366 * 24 * time.Hour
)

// MaxWait returns Wait, or its default.
func (l Limits) MaxWait() time.Duration { return cmp.Or(l.Wait, defaultWait) }

// SoftLimits are the limits at which approvers are asked whether the run may continue. An approval
// allows the same amount again; a rejection ends the run with the code of the limit. A limit of
// zero is not set; at least one is set.
type SoftLimits struct {
	// Turns, Tokens, Duration and Cost are as in [Limits]. Each is below the limit there.
	Turns    int           `json:"turns,omitempty" yaml:"turns,omitempty"`
	Tokens   int64         `json:"tokens,omitempty" yaml:"tokens,omitempty"`
	Duration time.Duration `json:"duration,omitempty" yaml:"duration,omitempty"`
	Cost     Money         `json:"cost,omitempty" yaml:"cost,omitempty"`

	// Approval is who decides, and until when. It has neither Tools nor When. OnExpiry is reject
	// (the default) or escalate: without an approval the run ends.
	Approval Approval `json:"approval,omitzero" yaml:"approval,omitempty"`
}

const softKey = "limits.soft"

// soft reads the key limits.soft.
func (r *reader) soft(key string, into **SoftLimits) func(*yaml.Node) string {
	s := &SoftLimits{}
	return r.keyed(key+".", func() []field {
		*into = s
		return []field{
			{"turns", count(&s.Turns)}, {"tokens", count(&s.Tokens)}, {"duration", duration(&s.Duration)}, {"cost", amount(&s.Cost)},
			{"approval", r.keyed(key+".approval.", func() []field { return r.decision(key+".approval", &s.Approval) })},
		}
	})
}

// mistakes returns the mistakes. hard are the hard limits with their defaults; each soft limit
// must be below the hard one.
func (s *SoftLimits) mistakes(hard Limits) []mistake {
	if s == nil {
		return nil
	}
	var found []mistake
	if s.Turns == 0 && s.Tokens == 0 && s.Duration == 0 && s.Cost == 0 {
		found = append(found, newMistake(softKey, "must have at least one of turns, tokens, duration and cost"))
	}
	checkBelow := func(key string, soft, hard int64, value any) {
		switch {
		case soft < 0:
			found = append(found, newMistake(softKey+"."+key, "must be greater than zero"))
		case soft > 0 && hard > 0 && soft >= hard:
			found = append(found, newMistake(softKey+"."+key, "must be below limits.%s, which is %v", key, value))
		}
	}
	checkBelow("turns", int64(s.Turns), int64(hard.Turns), hard.Turns)
	checkBelow("tokens", s.Tokens, hard.Tokens, hard.Tokens)
	checkBelow("duration", int64(s.Duration), int64(hard.Duration), hard.Duration)
	checkBelow("cost", int64(s.Cost), int64(hard.Cost), hard.Cost)
	return append(found, s.approvalMistakes()...)
}

// approvalMistakes returns the mistakes of the rule about approvers.
func (s *SoftLimits) approvalMistakes() []mistake {
	const key = softKey + ".approval"
	a := s.Approval
	found := a.decisionMistakes(key)
	if len(a.Tools) > 0 || a.When != "" {
		found = append(found, newMistake(key, "must have neither tools nor when"))
	}
	if slices.Contains([]string{OnExpirySkip, OnExpiryFail}, a.OnExpiry) {
		found = append(found, newMistake(key+".onExpiry", "%q must be reject or escalate", a.OnExpiry))
	}
	return found
}

// softJSON is the JSON of SoftLimits, with the duration as text.
type softJSON struct {
	Turns    int          `json:"turns,omitempty"`
	Tokens   int64        `json:"tokens,omitempty"`
	Duration durationJSON `json:"duration,omitempty"`
	Cost     *Money       `json:"cost,omitempty"`
	Approval Approval     `json:"approval,omitzero"`
}

// MarshalJSON returns the JSON with the keys of files, without defaults.
func (s SoftLimits) MarshalJSON() ([]byte, error) {
	if s.Approval.OnExpiry == OnExpiryReject {
		s.Approval.OnExpiry = ""
	}
	return json.Marshal(softJSON{s.Turns, s.Tokens, textOf(s.Duration), unlessZero(s.Cost), s.Approval})
}

// UnmarshalJSON parses the output of MarshalJSON, and refuses unknown members.
func (s *SoftLimits) UnmarshalJSON(data []byte) error {
	var in softJSON
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("%s: %w", softKey, err)
	}
	out := SoftLimits{Turns: in.Turns, Tokens: in.Tokens, Approval: in.Approval}
	if in.Cost != nil {
		out.Cost = *in.Cost
	}
	if err := in.Duration.into(&out.Duration); err != nil {
		return fmt.Errorf("%s.duration: %w", softKey, err)
	}
	*s = out
	return nil
}

// mistakes returns the mistakes of the hard and the soft limits.
func (l Limits) mistakes() []mistake {
	var found []mistake
	checkNegative := func(key string, isNegative bool) {
		if isNegative {
			found = append(found, newMistake("limits."+key, "must be greater than zero"))
		}
	}
	checkNegative("turns", l.Turns < 0)
	checkNegative("tokens", l.Tokens < 0)
	checkNegative("duration", l.Duration < 0)
	checkNegative("parallelTools", l.ParallelTools < 0)
	checkNegative("wait", l.Wait < 0)
	checkNegative("cost", l.Cost < 0)
	if l.Wait > maxWait {
		found = append(found, newMistake("limits.wait", "must be at most 366d, not %s", l.Wait))
	}
	if l.ParallelTools > maxParallelTools {
		found = append(found, newMistake("limits.parallelTools", "must be 1 to %d, not %d", maxParallelTools, l.ParallelTools))
	}
	return append(found, l.Soft.mistakes(l.orDefault())...)
}
