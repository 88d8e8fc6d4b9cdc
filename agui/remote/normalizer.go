package remote

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/perdure/perdure/agui"
)

// maxWarnings bounds the warnings of one event.
const maxWarnings = 100

// normalizer converts the events of one response to the form of AG-UI 1.x, and checks their order.
// It is used by one goroutine.
type normalizer struct {
	thread string // of the input
	run    string // of the current run, or of the last one
	isOld  bool   // the current run is of the generation before 1.0
	// isOpen and hasEnded are the state of the runs of the response.
	isOpen   bool
	hasEnded bool
	index    int // of the next SSE event

	thinking agui.ThinkingUpgrade
	chunks   agui.ChunkExpander
	verifier *agui.Verifier
	warnings []agui.Warning // since the last event that was returned
}

// newNormalizer returns a normalizer for a response to in; resumes means that it starts inside the
// run.
func newNormalizer(in agui.RunAgentInput, resumes bool) *normalizer {
	n := &normalizer{thread: in.ThreadID, run: in.RunID, verifier: &agui.Verifier{}}
	if resumes {
		n.verifier, n.isOpen = agui.ResumedVerifier(), true
	}
	return n
}

// take returns the events that the data of one SSE event stand for. The error is a *ProtocolError.
// Valid events before the error are returned with it.
func (n *normalizer) take(data []byte) ([]agui.Event, error) {
	index := n.index
	n.index++
	e, err := n.decode(data)
	if err != nil {
		return nil, &ProtocolError{Rule: RuleMalformed, Type: agui.TypeOf(data), Index: index, Err: err}
	}
	if e == nil {
		return nil, nil
	}
	expanded, err := n.chunks.Expand(e)
	var valid []agui.Event
	for _, next := range expanded {
		for _, missing := range n.missingEnds(next) {
			if err = n.verifier.Check(missing); err != nil {
				break
			}
			valid = append(valid, missing)
		}
		if err == nil {
			err = n.verifier.Check(next)
		}
		if err != nil {
			break
		}
		n.follow(next)
		valid = append(valid, next)
	}
	if err != nil {
		failure := &ProtocolError{Rule: RuleMalformed, Type: e.EventType(), Index: index, Err: err}
		if order, ok := errors.AsType[*agui.OrderError](err); ok {
			failure.Rule = order.Rule
		}
		return valid, failure
	}
	return valid, nil
}

// decode returns the event in its present form, without unknown material; nil = it is dropped.
func (n *normalizer) decode(data []byte) (agui.Event, error) {
	if err := agui.CheckValues(data); err != nil {
		return nil, err
	}
	e, err := agui.Decode(data)
	for err != nil {
		repaired, repairErr := n.repair(data, err)
		if repairErr != nil {
			return nil, repairErr
		}
		if data = repaired; data == nil {
			return nil, nil //nolint:nilnil // the event is dropped
		}
		e, err = agui.Decode(data)
	}
	e, warnings, err := n.thinking.Upgrade(e)
	if err != nil {
		return nil, err
	}
	n.warn(warnings...)
	if started, ok := e.(*agui.RunStarted); ok {
		if concern := isNewer(started.ProtocolVersion); concern != "" {
			n.warn(agui.Warning{Type: e.EventType(), Pointer: "/protocolVersion", Detail: concern})
		}
	}
	e, warnings = agui.Strip(e)
	n.warn(warnings...)
	return e, nil
}

// repair returns an event of the generation before 1.0 without the defect that err reports, or nil
// if clients of that generation ignore the event. It returns err for any other defect. Each call
// removes one defect.
func (n *normalizer) repair(data []byte, err error) ([]byte, error) {
	defect, ok := errors.AsType[*agui.DecodeError](err)
	var members map[string]json.RawMessage
	if !ok || json.Unmarshal(data, &members) != nil {
		return nil, err
	}
	t := agui.TypeOf(data)
	isOld := n.isOld || t == agui.EventRunStarted && isAbsent(members["protocolVersion"])
	name := strings.TrimPrefix(defect.Pointer, "/")
	switch {
	case !isOld:
		return nil, err
	case t == agui.EventStateDelta && (name == "delta" || strings.HasPrefix(name, "delta/")):
		n.warn(agui.Warning{Type: t, Pointer: defect.Pointer, Detail: "malformed patch, event dropped"})
		return nil, nil
	case !isAbsent(members[name]):
		return nil, err
	case t == agui.EventRunStarted && name == "threadId", t == agui.EventRunFinished && name == "threadId":
		members[name] = text(n.thread)
	case t == agui.EventRunStarted && name == "runId", t == agui.EventRunFinished && name == "runId":
		members[name] = text(n.run)
	case t == agui.EventCustom && name == "value", t == agui.EventRaw && name == "event":
		members[name] = json.RawMessage("null")
	default:
		return nil, err
	}
	n.warn(agui.Warning{Type: t, Pointer: defect.Pointer, Detail: "missing, filled in"})
	return json.Marshal(members)
}

// isAbsent reports whether a member is missing or null.
func isAbsent(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

// text returns a string as JSON.
func text(s string) json.RawMessage {
	raw, _ := json.Marshal(s) // strings can be encoded
	return raw
}

// missingEnds returns the end events of reasoning that a stream of the old generation leaves open
// at RUN_FINISHED, the last opened item first.
func (n *normalizer) missingEnds(next agui.Event) (ends []agui.Event) {
	if _, ok := next.(*agui.RunFinished); !ok || !n.isOld {
		return nil
	}
	for _, item := range slices.Backward(n.verifier.Open()) {
		switch item.Type {
		case agui.EventReasoningStart:
			ends = append(ends, &agui.ReasoningEnd{MessageID: item.ID, SubagentRunID: item.SubagentRunID})
		case agui.EventReasoningMessageStart:
			ends = append(ends, &agui.ReasoningMessageEnd{MessageID: item.ID, SubagentRunID: item.SubagentRunID})
		default:
			continue
		}
		n.warn(agui.Warning{Type: agui.EventRunFinished, Detail: "reasoning was still open, end filled in"})
	}
	return ends
}

// follow records the begin and the end of runs.
func (n *normalizer) follow(e agui.Event) {
	switch e := e.(type) {
	case *agui.RunStarted:
		n.run, n.isOld, n.isOpen = e.RunID, e.ProtocolVersion == "", true
	case *agui.RunFinished, *agui.RunError:
		n.isOpen, n.hasEnded = false, true
	}
}

// warn records warnings, up to maxWarnings.
func (n *normalizer) warn(warnings ...agui.Warning) {
	n.warnings = append(n.warnings, warnings[:min(len(warnings), maxWarnings-len(n.warnings))]...)
}

// takeWarnings returns the warnings since the last call.
func (n *normalizer) takeWarnings() []agui.Warning {
	warnings := n.warnings
	n.warnings = nil
	return warnings
}
