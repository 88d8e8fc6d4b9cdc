package agents

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Names are the names that definitions may refer to. A pattern may have * as a wildcard.
type Names struct {
	Tools     []string // by their names for models
	Agents    []string
	Servers   []string // MCP servers
	Providers []string // model providers; nil = all count as known
	Scripts   []string // scripts of the provider scripted
	Programs  []string // agents that are Go workflow functions
	// Others are patterns of names of any kind that other workers have.
	Others []string
	// Confidential means that errors must not suggest known names: the reader may not see them.
	Confidential bool
}

// BuiltIn returns the names that every worker has.
func BuiltIn() Names {
	return Names{
		Tools:     []string{"approve", "ask_user", "calculate", "confirm", "current_time", "event", "wait"},
		Providers: []string{"anthropic", "gemini", "openai", "openai-responses", scriptedProvider},
		Scripts:   []string{"count", "demo", "think"},
	}
}

const (
	scriptedProvider = "scripted"
	serverPrefix     = mcpPrefix
)

// Names returns the names of the folder's documents.
func (f *Folder) Names() Names {
	var n Names
	for _, d := range f.Agents {
		n.Agents = append(n.Agents, d.Name)
	}
	for _, t := range f.Tools {
		n.Tools = append(n.Tools, t.Name)
	}
	for _, s := range f.Servers {
		n.Servers = append(n.Servers, s.Name)
	}
	for _, s := range f.Scripts {
		n.Scripts = append(n.Scripts, s.Name)
	}
	return n
}

// With returns the names of both n and other.
func (n Names) With(other Names) Names {
	return Names{
		Tools:     slices.Concat(n.Tools, other.Tools),
		Agents:    slices.Concat(n.Agents, other.Agents),
		Servers:   slices.Concat(n.Servers, other.Servers),
		Providers: slices.Concat(n.Providers, other.Providers),
		Scripts:   slices.Concat(n.Scripts, other.Scripts),
		Programs:  slices.Concat(n.Programs, other.Programs),
		Others:    slices.Concat(n.Others, other.Others),

		Confidential: n.Confidential || other.Confidential,
	}
}

// CheckNames reports names in the folder's agents and scripts that neither the folder nor known
// has. The error is a *DefinitionError, or several joined: each has the position, and a suggestion
// if a known name is similar.
func (f *Folder) CheckNames(known Names) error {
	known = known.With(f.Names())
	var errs []error
	for _, d := range f.Agents {
		position, ok := f.positions[kindAgent+" "+d.Name]
		for _, e := range d.UnknownNames(known) {
			if ok {
				position.locate(e)
			}
			errs = append(errs, e)
		}
	}
	for _, script := range f.Scripts {
		for _, e := range f.unknownCalls(script, known) {
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}

// unknownCalls returns an error for each call of an unknown tool in a script. The tools of clients,
// of MCP servers and of subagents are known by the agents that use the script, so a script that no
// agent of the folder uses is not checked.
func (f *Folder) unknownCalls(s *Script, known Names) []*DefinitionError {
	patterns, isUsed := f.toolPatternsOf(scriptedProvider + "/" + s.Name)
	if !isUsed {
		return nil
	}
	c := &nameCheck{known: known}
	for i, turn := range s.Turns {
		for j, step := range turn.Steps {
			for k, call := range step.Calls {
				if !isNonLocalTool(patterns, call.Tool) {
					c.check(fmt.Sprintf("turns[%d].steps[%d].calls[%d].tool", i, j, k), "tool", call.Tool, known.Tools)
				}
			}
		}
	}
	for _, e := range c.errs {
		s.Position.locate(e)
	}
	return c.errs
}

// toolPatternsOf returns the tool patterns of the agents of the folder that use a model, inline
// agents included, and whether there are any. The agents of a program may have any client tools.
func (f *Folder) toolPatternsOf(model string) (patterns []string, isUsed bool) {
	offer := func(more ...string) { patterns, isUsed = append(patterns, more...), true }
	for _, d := range f.Agents {
		if slices.Contains(d.Models(), model) {
			offer(d.ownTools()...)
		}
		if slices.Contains(d.Models(), model) && d.Workflow != "" {
			offer(ClientPrefix + "*")
		}
		eachStep(d.Steps, func(s *Step) {
			if a := s.Agent; a != nil && a.Name == "" && slices.Contains(d.Inline("", a).Models(), model) {
				offer(d.Inline("", a).ownTools()...)
			}
		})
	}
	return patterns, isUsed
}

// find returns the position of a key such as tools[2]: that of the entry, else that of the nearest
// enclosing key, else that of the document.
func (p SourcePosition) find(key string) (line, column int) {
	for path := key; ; {
		if node := p.keys[path]; node != nil {
			return node.Line, node.Column
		}
		if bracket := strings.LastIndexByte(path, '['); bracket >= 0 && strings.HasSuffix(path, "]") {
			var i int
			_, err := fmt.Sscanf(path[bracket:], "[%d]", &i)
			if node := p.keys[path[:bracket]]; err == nil && node != nil && i < len(node.Content) {
				return node.Content[i].Line, node.Content[i].Column
			}
		}
		end := strings.LastIndexAny(path, ".[")
		if end < 0 {
			return p.Line, 0
		}
		path = path[:end]
	}
}

// UnknownNames returns an error for each name of the definition that is not known, without a
// position.
func (d *Definition) UnknownNames(known Names) []*DefinitionError {
	c := &nameCheck{d: d, known: known}
	c.tools("tools", d.Tools)
	if d.Workflow != "" {
		c.check("workflow", "program", d.Workflow, known.Programs)
	}
	c.models("model", d.Model, d.Fallback)
	c.model("context.model", d.Context.Model)
	c.model("titleModel", d.TitleModel)
	c.steps("steps", d.Steps)
	for i, p := range d.State.Predict {
		c.stateTool(fmt.Sprintf("state.predict[%d].tool", i), p.Tool)
	}
	for i, m := range d.State.Results {
		c.stateTool(fmt.Sprintf("state.results[%d].tool", i), m.Tool)
	}
	for i, rule := range d.Approvals {
		for j, p := range rule.Tools {
			if at := fmt.Sprintf("approvals[%d].tools[%d]", i, j); strings.HasPrefix(p, serverPrefix) {
				c.tool(at, p)
			} else if !strings.Contains(p, "*") {
				c.stateTool(at, p)
			}
		}
	}
	return c.errs
}

// nameCheck collects the unknown names of a definition.
type nameCheck struct {
	d     *Definition // nil for a script
	known Names
	errs  []*DefinitionError
}

// check adds an error unless the name is one of the candidates, or matches a pattern of Others.
func (c *nameCheck) check(key, kind, name string, candidates []string) {
	matches := func(pattern string) bool { return namesTool(pattern, name) }
	if slices.Contains(candidates, name) || slices.ContainsFunc(c.known.Others, matches) {
		return
	}
	if c.known.Confidential {
		candidates = nil
	}
	c.add(key, fmt.Sprintf("unknown %s %.80q%s", kind, name, suggestion(name, candidates)))
}

// add adds an error.
func (c *nameCheck) add(key, reason string) {
	e := &DefinitionError{Key: key}
	if c.d != nil {
		e.Agent = c.d.Name
	}
	e.Reason = e.Pointer() + ": " + reason
	c.errs = append(c.errs, e)
}

// tools checks a list of tool patterns.
func (c *nameCheck) tools(key string, patterns []string) {
	for i, p := range patterns {
		c.tool(fmt.Sprintf("%s[%d]", key, i), p)
	}
}

// tool checks one tool pattern. Patterns with * may match nothing, so they are always valid.
func (c *nameCheck) tool(at, p string) {
	switch prefix, name, _ := strings.Cut(p, ":"); {
	case prefix+":" == ClientPrefix:
	case prefix+":" == AgentPrefix, prefix+":" == HandoffPrefix:
		c.check(at, "agent", name, c.known.Agents)
	case prefix+":" == serverPrefix:
		// The tools of a server are known only when a worker is connected to it.
		if server, _, _ := strings.Cut(name, "/"); !strings.Contains(server, "*") {
			c.check(at, "MCP server", server, c.known.Servers)
		}
	case !strings.Contains(p, "*"):
		c.check(at, "tool", p, c.known.Tools)
	}
}

// stateTool checks a tool that the agent's state refers to. Those of inline agents count, because
// they have the state of the pipeline.
func (c *nameCheck) stateTool(at, tool string) {
	if c.d.Remote == nil && !isNonLocalTool(append(c.d.InlineTools(), c.d.ownTools()...), tool) {
		c.check(at, "tool", tool, c.known.Tools)
	}
}

// ownTools returns the tool patterns of the agent, with the tool that its state, or that of an
// inline agent, adds.
func (d *Definition) ownTools() []string {
	hasStateTool := len(d.State.Write) > 0
	eachStep(d.Steps, func(s *Step) {
		hasStateTool = hasStateTool || s.Agent != nil && len(s.Agent.State.Write) > 0
	})
	if !hasStateTool {
		return d.Tools
	}
	return append(slices.Clone(d.Tools), StateTool)
}

// models checks a model and the models after it.
func (c *nameCheck) models(key, model string, f Fallback) {
	all := modelsOf(model, f)
	for i, m := range all {
		c.model(modelKey(key, i, len(all)), m)
	}
}

// model checks provider/model.
func (c *nameCheck) model(key, model string) {
	provider, name, ok := strings.Cut(model, "/")
	switch {
	case !ok || c.known.Providers == nil:
	case !slices.Contains(c.known.Providers, provider) && slices.Contains(BuiltIn().Providers, provider):
		c.add(key, fmt.Sprintf("no worker is configured for the model provider %q: set its API key", provider))
	case !slices.Contains(c.known.Providers, provider):
		c.check(key, "model provider", provider, c.known.Providers)
	case provider == scriptedProvider:
		c.check(key, "script", name, c.known.Scripts)
	}
}

// steps checks a list of steps.
func (c *nameCheck) steps(key string, steps []Step) {
	for i := range steps {
		c.step(fmt.Sprintf("%s[%d]", key, i), &steps[i])
	}
}

// step checks a step and the steps in it.
func (c *nameCheck) step(at string, s *Step) {
	if a := s.Agent; a != nil && a.Name != "" {
		c.check(at+".agent", "agent", a.Name, c.known.Agents)
	} else if a != nil {
		c.tools(at+".agent.tools", a.Tools)
		c.models(at+".agent.model", a.Model, a.Fallback)
	}
	if s.Tool != "" && !isNonLocalTool(c.d.Tools, s.Tool) {
		c.check(at+".tool", "tool", s.Tool, c.known.Tools)
	}
	c.steps(at+".steps", s.Steps)
	c.steps(at+".onError.steps", s.OnError.Steps)
	if s.Parallel != nil {
		c.steps(at+".parallel", s.Parallel.Steps)
	}
	if s.Map != nil {
		c.steps(at+".map.steps", s.Map.Steps)
	}
	if s.Loop != nil {
		c.steps(at+".loop.steps", s.Loop.Steps)
	}
	for i, r := range s.Route {
		c.steps(fmt.Sprintf("%s.route[%d].steps", at, i), r.Steps)
	}
	if s.Compensate != nil {
		c.step(at+".compensate", s.Compensate)
	}
}

// isNonLocalTool reports whether a tool may be a client tool, a subagent, a handoff, or a tool of
// an MCP server, by the tool patterns of its agent. Client tools are known only at run time; the
// others are checked where the agent lists its tools.
func isNonLocalTool(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, name, _ := strings.Cut(p, ":")
		switch prefix + ":" {
		case ClientPrefix:
			return namesTool(name, tool)
		case AgentPrefix:
			return name == tool
		case HandoffPrefix:
			return HandoffTool(name) == tool
		case serverPrefix:
			server, _, _ := strings.Cut(name, "/")
			return strings.Contains(server, "*") || strings.HasPrefix(tool, server+"_")
		}
		return p == tool // checked in the agent's tools
	})
}
