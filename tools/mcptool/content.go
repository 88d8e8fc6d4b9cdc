package mcptool

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
)

// resultOf converts an MCP result. The texts at its beginning become Content, and everything after
// them becomes parts. Structured content is used only without other content, because servers repeat
// it as text (MCP, "Structured Content").
func resultOf(r *mcp.CallToolResult) tools.Result {
	var parts []llm.Part
	for _, c := range r.Content {
		if p := partOf(c); p != nil {
			parts = append(parts, p)
		}
	}
	var texts []string
	for len(parts) > 0 {
		text, ok := parts[0].(llm.Text)
		if !ok {
			break
		}
		texts, parts = append(texts, text.Text), parts[1:]
	}
	if len(texts) == 0 && len(parts) == 0 && r.StructuredContent != nil {
		texts = []string{compact(r.StructuredContent)}
	}
	result := tools.Result{Content: strings.Join(texts, "\n"), Parts: parts}
	if r.IsError {
		failed := tools.Failed(result.Content)
		failed.Parts = parts
		return failed
	}
	return result
}

// partOf converts a content block; nil for an unknown type.
func partOf(c mcp.Content) llm.Part {
	switch c := c.(type) {
	case *mcp.TextContent:
		return llm.Text{Text: c.Text}
	case *mcp.ImageContent:
		return media(llm.MediaImage, c.MIMEType, "", c.Data)
	case *mcp.AudioContent:
		return media(llm.MediaAudio, c.MIMEType, "", c.Data)
	case *mcp.ResourceLink:
		return llm.Text{Text: describeLink(c)}
	case *mcp.EmbeddedResource:
		if c.Resource != nil {
			return embedded(c.Resource)
		}
	}
	return nil
}

// media returns a media part.
func media(kind llm.MediaKind, mimeType, name string, data []byte) llm.Part {
	return llm.Media{Kind: kind, MIME: mimeType, Name: name, Data: base64.StdEncoding.EncodeToString(data)}
}

// describeLink returns a text about a linked resource. It is not a part with a URL, because model
// providers would fetch the URL.
func describeLink(l *mcp.ResourceLink) string {
	text := fmt.Sprintf("[resource %s: %s]", l.Name, l.URI)
	if l.MIMEType != "" {
		text = fmt.Sprintf("[resource %s (%s): %s]", l.Name, l.MIMEType, l.URI)
	}
	if l.Description != "" {
		text += " " + l.Description
	}
	return text
}

// embedded converts an embedded resource: text, media that models accept, or a description of other
// binary data.
func embedded(r *mcp.ResourceContents) llm.Part {
	if len(r.Blob) == 0 {
		return llm.Text{Text: fmt.Sprintf("[resource %s]\n%s", r.URI, r.Text)}
	}
	family, _, _ := strings.Cut(r.MIMEType, "/")
	switch {
	case family == "image":
		return media(llm.MediaImage, r.MIMEType, r.URI, r.Blob)
	case family == "audio":
		return media(llm.MediaAudio, r.MIMEType, r.URI, r.Blob)
	case r.MIMEType == "application/pdf":
		return media(llm.MediaDocument, r.MIMEType, r.URI, r.Blob)
	}
	return llm.Text{Text: fmt.Sprintf("[resource %s: %d bytes of %q, which is not supported]", r.URI, len(r.Blob), r.MIMEType)}
}
