package agents

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/agents/expression"
)

// steps reads a list of steps. It bounds their number and depth, because YAML aliases can multiply
// content and can even contain themselves.
func (r *reader) steps(key string, into *[]Step) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if r.depth++; r.depth > maxTreeDepth {
			r.depth--
			return fmt.Sprintf("must be at most %d deep", maxTreeDepth)
		}
		defer func() { r.depth-- }()
		return r.entries(key, maxTree, func(entryKey string, entry *yaml.Node) {
			*into = append(*into, r.step(entryKey, entry))
		})(node)
	}
}

// step reads one step. Which keys exclude each other is checked later, by treeCheck.
func (r *reader) step(key string, entry *yaml.Node) (s Step) {
	r.nodes[key] = entry
	if r.tree++; r.tree > maxTree {
		if r.tree == maxTree+1 {
			r.report(key, entry, fmt.Sprintf("%s: there must be at most %d steps", key, maxTree))
		}
		return s
	}
	prefix, visible := key+".", true
	r.mapping(prefix, entry, []field{
		{"name", text(&s.Name)},
		{"when", expressionText(&s.When)},
		{"agent", r.agentStep(prefix+"agent.", &s.Agent)},
		{"tool", match(&s.Tool, toolName, "must be 1 to 64 letters, digits, _ and -")},
		{"wait", r.waitStep(prefix+"wait.", &s)},
		{"event", r.eventStep(prefix+"event.", &s)},
		{"approve", r.approve(prefix+"approve", &s.Approve)},
		{"parallel", r.parallel(prefix+"parallel", &s.Parallel)},
		{"map", r.mapStep(prefix+"map.", &s.Map)},
		{"route", r.cases(prefix+"route", &s.Route)},
		{"loop", r.loop(prefix+"loop.", &s.Loop)},
		{"set", r.ops(prefix+"set", &s.Set)},
		{"steps", r.steps(prefix+"steps", &s.Steps)},
		{"input", text(&s.Input)},
		{"output", r.output(prefix+"output.", &s.Output)},
		{"args", object(&s.Args)},
		{"visible", flag(&visible)},
		{"retry", r.retry(prefix+"retry.", &s.Retry)},
		{"timeout", duration(&s.Timeout)},
		{"onError", r.onError(prefix+"onError.", &s.OnError)},
		{"compensate", r.compensate(prefix+"compensate", &s.Compensate)},
	})
	r.reportShortForm(prefix)
	s.Hidden = !visible
	return s
}

// expressionText reads an expression. It also accepts the literals true and false, which YAML does
// not parse as strings.
func expressionText(into *string) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!bool" {
			var value bool
			if node.Decode(&value) == nil {
				*into = fmt.Sprint(value)
				return ""
			}
		}
		if reason := text(into)(node); reason != "" {
			return reason
		}
		if *into == "" {
			return "must not be empty"
		}
		return ""
	}
}

// keyed reads a mapping by fields. fields is called only if the value is a mapping.
func (r *reader) keyed(prefix string, fields func() []field) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		r.mapping(prefix, node, fields())
		return ""
	}
}

// agentStep reads the name of an agent, or an inline agent.
func (r *reader) agentStep(prefix string, into **AgentStep) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		a := &AgentStep{}
		*into = a
		if isText(node) {
			a.Name = node.Value
			return ""
		}
		if node.Kind != yaml.MappingNode {
			return "must be the name of an agent, or an inline agent, not " + describe(node)
		}
		r.mapping(prefix, node, []field{
			{"model", r.models(prefix+"model", &a.Model, &a.Fallback)},
			{"fallback", r.fallback(prefix, &a.Fallback)},
			{"reasoning", r.reasoning(prefix, &a.Reasoning)},
			{"instructions", text(&a.Instructions)},
			{"tools", r.texts(prefix+"tools", &a.Tools)},
			{"state", r.state(prefix, &a.State)},
			{"limits", r.limits(prefix, &a.Limits)},
		})
		return ""
	}
}

// approve reads an approve step, whose rule has its keys at the same level.
func (r *reader) approve(key string, into **ApproveStep) func(*yaml.Node) string {
	a := &ApproveStep{}
	return r.keyed(key+".", func() []field {
		*into = a
		return append([]field{{"message", text(&a.Message)}, {"args", object(&a.Args)}}, r.decision(key, &a.Rule)...)
	})
}

// parallel reads a list of branches, or a mapping with the branches and options.
func (r *reader) parallel(key string, into **ParallelStep) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		p := &ParallelStep{}
		*into = p
		if node.Kind == yaml.SequenceNode {
			return r.steps(key, &p.Steps)(node)
		}
		return r.keyed(key+".", func() []field {
			return []field{
				{"steps", r.steps(key, &p.Steps)},
				{"concurrency", count(&p.Concurrency)},
				{"onError", oneOf(&p.OnError, OnErrorFail, OnErrorContinue)},
			}
		})(node)
	}
}

// mapStep reads a map step.
func (r *reader) mapStep(prefix string, into **MapStep) func(*yaml.Node) string {
	m := &MapStep{}
	return r.keyed(prefix, func() []field {
		*into = m
		return []field{
			{"items", text(&m.Items)}, {"as", text(&m.As)}, {"concurrency", count(&m.Concurrency)},
			{"onError", oneOf(&m.OnError, OnErrorFail, OnErrorContinue)},
			{"steps", r.steps(prefix+"steps", &m.Steps)},
		}
	})
}

// cases reads the cases of a route.
func (r *reader) cases(key string, into *[]Case) func(*yaml.Node) string {
	return r.entries(key, maxCases, func(caseKey string, entry *yaml.Node) {
		r.nodes[caseKey] = entry
		var c Case
		r.mapping(caseKey+".", entry, []field{{"when", expressionText(&c.When)}, {"steps", r.steps(caseKey+".steps", &c.Steps)}})
		*into = append(*into, c)
	})
}

// loop reads a loop step.
func (r *reader) loop(prefix string, into **LoopStep) func(*yaml.Node) string {
	l := &LoopStep{}
	return r.keyed(prefix, func() []field {
		*into = l
		return []field{{"max", count(&l.Max)}, {"until", expressionText(&l.Until)}, {"steps", r.steps(prefix+"steps", &l.Steps)}}
	})
}

// ops reads a list of operations, or a mapping of pointers to values, in the order of the file. The
// mapping is the short form of operations without op.
func (r *reader) ops(key string, into *[]Op) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return r.entries(key, maxOps, func(opKey string, entry *yaml.Node) {
				r.nodes[opKey] = entry
				var o Op
				r.mapping(opKey+".", entry, []field{
					{"op", text(&o.Op)}, {"path", text(&o.Path)}, {"from", text(&o.From)}, {"value", anyJSON(&o.Value)},
				})
				*into = append(*into, o)
			})(node)
		}
		if n := len(node.Content) / 2; n == 0 || n > maxOps {
			return fmt.Sprintf("must be 1 to %d changes, not %d", maxOps, n)
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			opKey := fmt.Sprintf("%s[%d]", key, i/2)
			o := Op{Path: node.Content[i].Value}
			r.nodes[opKey] = node.Content[i]
			if reason := anyJSON(&o.Value)(resolve(node.Content[i+1])); reason != "" {
				r.report(opKey, node.Content[i+1], opKey+" "+reason)
			}
			*into = append(*into, o)
		}
		return ""
	}
}

// output reads the form of an agent's answer.
func (r *reader) output(prefix string, into **Output) func(*yaml.Node) string {
	o := &Output{}
	return r.keyed(prefix, func() []field {
		*into = o
		return []field{{"schema", schema(&o.Schema)}, {"repairs", repairs(&o.Repairs)}, {"native", native(&o.Native)}}
	})
}

// result reads the form of the result of an agent's runs.
func (r *reader) result(into **Output) func(*yaml.Node) string {
	o := &Output{}
	return r.keyed("output.", func() []field {
		*into = o
		return []field{
			{"schema", schema(&o.Schema)}, {"value", expressionText(&o.Value)},
			{"repairs", repairs(&o.Repairs)}, {"native", native(&o.Native)},
		}
	})
}

// native reads a boolean whose absence has a meaning of its own.
func native(into **bool) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		*into = new(bool)
		return flag(*into)(node)
	}
}

// repairs reads a whole number; unlike count it accepts 0.
func repairs(into **int) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		var n int
		if node.ShortTag() != "!!int" || node.Decode(&n) != nil {
			return "must be a whole number, not " + describe(node)
		}
		*into = &n
		return ""
	}
}

// retry reads a retry policy.
func (r *reader) retry(prefix string, into **Retry) func(*yaml.Node) string {
	t := &Retry{}
	return r.keyed(prefix, func() []field {
		*into = t
		return []field{{"attempts", count(&t.Attempts)}, {"interval", duration(&t.Interval)}, {"backoff", number(&t.Backoff)}}
	})
}

// number reads a number.
func number(into *float64) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if tag := node.ShortTag(); tag != "!!int" && tag != "!!float" || node.Decode(into) != nil {
			return "must be a number, not " + describe(node)
		}
		return ""
	}
}

// onError reads fail, continue, or a mapping with steps.
func (r *reader) onError(prefix string, into *OnError) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind == yaml.MappingNode {
			return r.keyed(prefix, func() []field { return []field{{"steps", r.steps(prefix+"steps", &into.Steps)}} })(node)
		}
		var word string
		if reason := oneOf(&word, OnErrorFail, OnErrorContinue)(node); reason != "" {
			return reason + ", or have steps"
		}
		into.Continue = word == OnErrorContinue
		return ""
	}
}

// compensate reads a step that compensates. It counts as one level of depth.
func (r *reader) compensate(key string, into **Step) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		if r.depth++; r.depth > maxTreeDepth {
			r.depth--
			return fmt.Sprintf("must be at most %d deep", maxTreeDepth)
		}
		defer func() { r.depth-- }()
		s := r.step(key, node)
		*into = &s
		return ""
	}
}

// anyJSON reads any JSON value, with numbers in the form of package expression.
func anyJSON(into *any) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		c := &converter{}
		value := c.value(node, 0)
		if c.reason != "" {
			return c.reason
		}
		if _, err := json.Marshal(value); err != nil {
			return "has no JSON form: " + err.Error()
		}
		*into = expression.Normal(value)
		return ""
	}
}

// object reads a JSON object.
func object(into *map[string]any) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		var value any
		reason := anyJSON(&value)(node)
		if reason == "" {
			*into, _ = value.(map[string]any)
		}
		return reason
	}
}
