package approvalroutes

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/internal/approvals/links"
	"github.com/perdure/perdure/stream"
)

// linkPage is the data of link.html. It shows one of three things: the decision to make (neither
// Done nor Problem), that it was made (Done), or why it cannot be made (Problem). The template
// escapes all texts, some of which a model or a user wrote.
type linkPage struct {
	// Decision is approve or reject, and Subject the person who decides; "" = an anonymous caller.
	// Message is the text of the interrupt.
	Decision string
	Subject  string
	Message  string
	// Agent, Step and Thread are those of the interrupt; Step is empty outside of pipelines. Tool
	// is empty for an approve step, and so is Args if the step has only a message.
	Agent  string
	Step   string
	Thread string
	Tool   string
	Args   string
	// Done tells that the decision was made.
	Done bool
	// Before tells that another person had made the same decision before.
	Before bool
	// Missing is how many more approvers must vote for the same arguments.
	Missing int
	// Problem is why the link does not decide; "" = it does.
	Problem string
	Unknown bool // with Problem: it is unknown whether the decision was made
	// Style is linkStyle; showLinkPage sets it.
	Style template.CSS
}

// linkHTML is the source of the page's template.
//
//go:embed link.html
var linkHTML string

// linkStyle is the style sheet of the page, inline because the policy forbids loading one.
const linkStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}` +
	`pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f3f3f3;padding:1rem}button{font:inherit;padding:.5rem 1.5rem}`

var linkTemplate = template.Must(template.New("link").Parse(linkHTML))

// linkPolicy is the Content-Security-Policy of the page: it may use linkStyle, by its hash, and
// send its form to this server. It may not load anything, run scripts, or be framed by another
// page, which could trick a person into a click.
var linkPolicy = func() string {
	sum := sha256.Sum256([]byte(linkStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

// showLinkPage answers with a page, and ends gin's chain of handlers. The headers keep the URL,
// which may be a secret, out of caches, Referer headers to other servers, and search engines. With
// the policy no-referrer a browser would send the form with the Origin null, as a foreign page does.
func showLinkPage(c *gin.Context, status int, page linkPage) {
	page.Style = linkStyle
	var b bytes.Buffer
	if err := linkTemplate.Execute(&b, page); err != nil { // cannot happen: the template was parsed, and has all its fields
		b.Reset()
	}
	for name, value := range map[string]string{
		"Content-Security-Policy": linkPolicy, "Cache-Control": "no-store", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
		"X-Frame-Options": "DENY", "X-Robots-Tag": "noindex, nofollow",
	} {
		c.Header(name, value)
	}
	c.Abort()
	c.Data(status, "text/html; charset=utf-8", b.Bytes())
}

// maxShownBytes bounds the arguments on the page, in bytes.
const maxShownBytes = 16 << 10

// argumentsText returns arguments as indented JSON, or as they are if they are not JSON. Arguments
// that are too long are not shown at all: a person must not decide by a part of them.
func argumentsText(arguments string) string {
	if len(arguments) > maxShownBytes {
		return "The arguments are too long to show here."
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(arguments), "", "  ") != nil {
		return strings.ToValidUTF8(arguments, "�")
	}
	return b.String()
}

// linkPageOf returns the page that shows the decision of a link to a person, with its form.
func linkPageOf(link links.Link, subject string, interrupt *decisions.Interrupt) (linkPage, error) {
	page := linkPage{Decision: link.Decision, Subject: subject, Message: interrupt.Message, Thread: link.Thread, Agent: interrupt.Thread.Agent(), Tool: interrupt.Call.Name, Args: argumentsText(interrupt.Call.Arguments)}
	source, err := stream.ApprovalSourceOf(interrupt.Interrupt)
	if err != nil {
		return page, err
	}
	if source != nil {
		page.Agent = source.Agent
		if source.Step != pipeline.LimitPath {
			page.Step = source.Step
		}
	}
	if interrupt.Call.Name == pipeline.ApproveTool {
		page.Tool = ""
		if page.Args == "{}" {
			page.Args = ""
		}
	}
	return page, nil
}
