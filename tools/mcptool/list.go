package mcptool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/tools"
)

// Limits for the tools of a server: their number, and the length of their names in bytes.
const (
	maxTools   = 512
	maxOwnName = 128
)

// list requests the tools of the server and stores them as its offers. It logs a warning for each
// tool that it omits because it is invalid.
func (s *Server) list(session *mcp.ClientSession) error {
	ctx, cancel := context.WithTimeout(s.life, listTimeout)
	defer cancel()
	var offers []tools.Offer
	isListed := map[string]bool{}
	for declared, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if len(offers) == maxTools {
			s.logger.WarnContext(ctx, "MCP server has too many tools: the rest is ignored", "limit", maxTools)
			break
		}
		offer, err := s.offer(declared)
		if err == nil && isListed[declared.Name] {
			err = fmt.Errorf("two tools have this name")
		}
		if err != nil {
			s.logger.WarnContext(ctx, "tool of an MCP server is ignored", "tool", fmt.Sprintf("%.128q", declared.Name), "error", err)
			continue
		}
		isListed[declared.Name] = true
		offers = append(offers, offer)
	}
	slices.SortFunc(offers, func(a, b tools.Offer) int { return cmp.Compare(a.Name, b.Name) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil { // not the first list of this connection
		s.logger.InfoContext(ctx, "MCP server has changed its tools", "tools", len(offers))
	}
	s.offers, s.isListed = offers, true
	return nil
}

// offer converts a declared tool. The error says why the tool cannot be used.
func (s *Server) offer(declared *mcp.Tool) (tools.Offer, error) {
	if declared.Name == "" || len(declared.Name) > maxOwnName {
		return tools.Offer{}, fmt.Errorf("the name must have 1 to %d bytes", maxOwnName)
	}
	parameters, err := parametersOf(declared)
	if err != nil {
		return tools.Offer{}, err
	}
	t := &tool{server: s, remoteName: declared.Name, spec: tools.Spec{
		Name: modelName(s.cfg.Name, declared.Name), Parameters: parameters, Timeout: s.cfg.Timeout,
		Description: cmp.Or(declared.Description, declared.Title), TaskQueue: s.cfg.TaskQueue,
	}}
	if s.cfg.Sequential {
		t.spec.Sequence = "mcp:" + s.cfg.Name
	}
	// The annotations are hints: servers need not tell the truth. Config.Idempotent overrides them.
	if hints := declared.Annotations; hints != nil {
		t.spec.Description = cmp.Or(t.spec.Description, hints.Title)
		t.spec.Idempotent = hints.ReadOnlyHint || hints.IdempotentHint
	}
	t.spec.Description = s.secrets().Text(t.spec.Description)
	if s.cfg.Idempotent != nil {
		t.spec.Idempotent = *s.cfg.Idempotent
	}
	if t.spec.Idempotent {
		t.spec.Attempts = s.cfg.Attempts
	}
	guarded, err := tools.Guard(t)
	return tools.Offer{Name: declared.Name, Tool: guarded}, err
}

// parametersOf returns the schema of a tool's arguments. MCP and model providers require the type
// object, which some servers omit.
func parametersOf(declared *mcp.Tool) (json.RawMessage, error) {
	schema, ok := declared.InputSchema.(map[string]any)
	if !ok || schema == nil {
		schema = map[string]any{}
	}
	if _, typed := schema["type"]; !typed {
		schema["type"] = "object"
	}
	return json.Marshal(schema)
}

// maxModelName is the maximum length of a tool's name for models.
const maxModelName = 64

// notInNames matches characters that model providers reject in names.
var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// modelName returns the model's name of a tool: server_tool. A name that providers would reject is
// changed, and ends with a digest of the tool's own name. It depends only on the two names, and
// different tools have different names.
func modelName(server, own string) string {
	name := server + "_" + notInNames.ReplaceAllString(own, "_")
	if len(name) <= maxModelName && name == server+"_"+own {
		return name
	}
	sum := sha256.Sum256([]byte(own))
	digest := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxModelName-len(digest))] + digest
}
