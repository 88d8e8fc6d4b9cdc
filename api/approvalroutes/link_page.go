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

// linkPage is the page of a link: the decision to make, that it was made, or why it cannot be made.
type linkPage struct {
	Decision string
	Subject  string
	Message  string
	// Agent, Step and Thread are those of the interrupt; Step is empty outside of pipelines. Tool
	// is empty for an approve step, and Args if it has only a message.
	Agent  string
	Step   string
	Thread string
	Tool   string
	Args   string
	Done   bool
	// Before tells that another caller made the same decision.
	Before bool
	// Missing is how many more approvers have to vote for the same.
	Missing int
	Problem string
	Unknown bool // with a Problem: whether it was decided is unknown
	Style   template.CSS
}

//go:embed link.html
var linkHTML string

const linkStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}` +
	`pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f3f3f3;padding:1rem}button{font:inherit;padding:.5rem 1.5rem}`

var linkTemplate = template.Must(template.New("link").Parse(linkHTML))

// linkPolicy allows the page nothing but to send its form.
var linkPolicy = func() string {
	sum := sha256.Sum256([]byte(linkStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

func showLinkPage(c *gin.Context, status int, page linkPage) {
	page.Style = linkStyle
	var b bytes.Buffer
	if err := linkTemplate.Execute(&b, page); err != nil { // the template was parsed, and has all its fields
		b.Reset()
	}
	for name, value := range map[string]string{
		"Content-Security-Policy": linkPolicy, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		"X-Frame-Options": "DENY", "X-Robots-Tag": "noindex, nofollow",
	} {
		c.Header(name, value)
	}
	c.Abort()
	c.Data(status, "text/html; charset=utf-8", b.Bytes())
}

// maxShown bounds the arguments on the page, in bytes.
const maxShown = 16 << 10

// shownText is arguments as indented JSON. Arguments that are too long are not shown in part.
func shownText(arguments string) string {
	if len(arguments) > maxShown {
		return "The arguments are too long to be shown here."
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(arguments), "", "  ") != nil {
		return strings.ToValidUTF8(arguments, "�")
	}
	return b.String()
}

// linkPageOf returns the page with the form.
func linkPageOf(l links.Link, q *decisions.Interrupt) (linkPage, error) {
	page := linkPage{Decision: l.Decision, Subject: l.Subject, Message: q.Message, Thread: l.Thread, Agent: q.Thread.Agent(), Tool: q.Call.Name, Args: shownText(q.Call.Arguments)}
	asked, err := stream.ApprovalSourceOf(q.Interrupt)
	if err != nil {
		return page, err
	}
	if asked != nil {
		page.Agent = asked.Agent
		if asked.Step != pipeline.LimitPath {
			page.Step = asked.Step
		}
	}
	if q.Call.Name == pipeline.ApproveTool {
		page.Tool = ""
		if page.Args == "{}" {
			page.Args = ""
		}
	}
	return page, nil
}
