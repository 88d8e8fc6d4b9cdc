package api

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
	"github.com/perdure/perdure/internal/links"
	"github.com/perdure/perdure/stream"
)

// linkPage is what whoever follows a link is shown: what is to be decided, or that it is done, or why it
// cannot be.
type linkPage struct {
	Decision string
	Subject  string
	Message  string
	// Agent, Step and Thread name where the interrupt was raised; Step is empty outside of pipelines. Tool is empty where a step asks itself, and
	// Args where it asks about nothing but its message.
	Agent  string
	Step   string
	Thread string
	Tool   string
	Args   string
	Done   bool
	// Before tells that another caller made the same decision before.
	Before bool
	// Missing is how many more people have to vote for the same.
	Missing int
	Problem string
	Unknown bool // whether it was decided, behind a Problem
	Style   template.CSS
}

//go:embed link.html
var linkHTML string

const linkStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}` +
	`pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f3f3f3;padding:1rem}button{font:inherit;padding:.5rem 1.5rem}`

var linkTemplate = template.Must(template.New("link").Parse(linkHTML))

// linkPolicy lets the page do nothing but send its own form.
var linkPolicy = func() string {
	sum := sha256.Sum256([]byte(linkStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

func showLinkPage(c *gin.Context, status int, page linkPage) {
	page.Style = linkStyle
	var b bytes.Buffer
	if err := linkTemplate.Execute(&b, page); err != nil { // cannot be: it was parsed, and all fields are there
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

// maxShown bounds the arguments that the page shows, in bytes.
const maxShown = 16 << 10

// shownText is arguments as people read them. What is too long to be read is not half shown.
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

// linkPageOf is the page that asks for the decision of a link.
func linkPageOf(l links.Link, q *question) (linkPage, error) {
	page := linkPage{Decision: l.Decision, Subject: l.Subject, Message: q.Message, Thread: l.Thread, Agent: q.thread.Agent(), Tool: q.call.Name, Args: shownText(q.call.Arguments)}
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
	if q.call.Name == pipeline.ApproveTool {
		page.Tool = ""
		if page.Args == "{}" {
			page.Args = ""
		}
	}
	return page, nil
}
