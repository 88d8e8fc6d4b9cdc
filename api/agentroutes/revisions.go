package agentroutes

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
)

// Revision is one publication of an agent, in a list. A revision that is published again has a
// further entry.
type Revision struct {
	Revision    string    `json:"revision"`
	PublishedAt time.Time `json:"publishedAt"`
	// Source tells whether a client or the folder of a process has published the revision. Current
	// is true for the last publication only.
	Source  catalog.Source `json:"source"`
	Current bool           `json:"current"`
	// Scope tells to whom the agent belongs.
	Scope Scope `json:"scope"`
	// By is the subject that has published the revision, and ByTenant its tenant.
	By       string `json:"by,omitempty"`
	ByTenant string `json:"byTenant,omitempty"`
	// Note is what the publisher says about the change.
	Note string `json:"note,omitempty"`
}

// listRevisions serves GET /v1/agents/{agent}/revisions: the publications of an agent, the last one
// first. An unknown agent is a 404.
func (r *Routes) listRevisions(c *gin.Context) error {
	tenant, agent, err := r.readable(c)
	if err != nil {
		return err
	}
	published, err := r.Catalog.Publications(tenant, agent)
	if err != nil {
		return err
	}
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	below, err := pageStart(c)
	if err != nil {
		return err
	}
	answer := struct {
		Items      []Revision `json:"items"`
		NextCursor string     `json:"nextCursor,omitempty"`
	}{Items: []Revision{}}
	current := published[len(published)-1].Number
	for _, p := range slices.Backward(published) {
		if p.Number >= below {
			continue
		}
		if len(answer.Items) == limit {
			break
		}
		entry := Revision{Revision: p.Revision, PublishedAt: p.At.UTC(), Source: p.Source, Scope: scopeOf(tenant), Current: p.Number == current, Note: p.Note}
		if p.By != nil {
			entry.By, entry.ByTenant = p.By.Subject, p.By.Tenant
		}
		answer.Items = append(answer.Items, entry)
		// Set only while older publications follow this one.
		if answer.NextCursor = ""; p.Number > published[0].Number {
			answer.NextCursor = strconv.FormatUint(p.Number, 10)
		}
	}
	return request.WriteJSON(c, http.StatusOK, answer)
}

// pageStart reads the cursor of a list of publications, and returns the number below which the page
// begins: that of the last publication on the page before. Without a cursor it is the largest
// number.
func pageStart(c *gin.Context) (uint64, error) {
	text, ok := c.GetQuery("cursor")
	if !ok {
		return ^uint64(0), nil
	}
	below, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, problem.BadRequest("invalid_cursor", "", fmt.Sprintf("the cursor does not belong to this list: %.40q", text))
	}
	return below, nil
}

// showRevision serves GET /v1/agents/{agent}/revisions/{revision}: a definition with all defaults,
// as JSON or, if the Accept header prefers that, as YAML. A revision that the agent never had is a
// 404.
func (r *Routes) showRevision(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	tenant, agent, err := r.readable(c)
	if err != nil {
		return err
	}
	revision := request.Segment(c, "revision")
	d, _, err := r.publication(ctx, tenant, agent, revision)
	if err != nil {
		return err
	}
	encode, kind := agents.Encode, gin.MIMEJSON
	if format := c.NegotiateFormat(append([]string{gin.MIMEJSON}, yamlTypes...)...); slices.Contains(yamlTypes, format) {
		encode, kind = (*agents.Definition).YAML, format
	}
	body, err := encode(d)
	if err != nil {
		return err
	}
	c.Header("ETag", etag(revision))
	c.Header("Vary", "Accept")
	return request.WriteBytes(c, http.StatusOK, kind, body)
}

// diffRevision serves GET /v1/agents/{agent}/revisions/{revision}/diff: a unified diff of the YAML
// of two revisions. The other revision is the one in the parameter from, or else the one that this
// revision replaced when it was last published. The first revision is compared with an empty file.
func (r *Routes) diffRevision(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	tenant, agent, err := r.readable(c)
	if err != nil {
		return err
	}
	to, fromRevision, err := r.publication(ctx, tenant, agent, request.Segment(c, "revision"))
	if err != nil {
		return err
	}
	var from *agents.Definition
	if requested := c.Query("from"); requested != "" {
		fromRevision = requested
	}
	if fromRevision != "" {
		if from, _, err = r.publication(ctx, tenant, agent, fromRevision); err != nil {
			return err
		}
	}
	text, err := diff(tenant, from, to)
	if err != nil {
		return err
	}
	return request.WriteBytes(c, http.StatusOK, "text/plain; charset=utf-8", []byte(text))
}

// publication returns a definition that the agent of a tenant has or had, and the revision that it replaced
// when it was last published; "" = none.
func (r *Routes) publication(ctx context.Context, tenant, agent, revision string) (d *agents.Definition, replaced string, err error) {
	list, err := r.Catalog.Publications(tenant, agent)
	if err != nil {
		return nil, "", err
	}
	last := len(list) - 1
	// The newest publication of the revision counts.
	for ; last >= 0 && list[last].Revision != revision; last-- {
	}
	if last < 0 {
		return r.draft(ctx, tenant, agent, revision, list)
	}
	for i := last - 1; i >= 0 && replaced == ""; i-- {
		if list[i].Revision != revision { // two callers may have published the same revision, one after the other
			replaced = list[i].Revision
		}
	}
	d, err = r.Catalog.Revision(ctx, tenant, agent, revision)
	return d, replaced, err
}

// draft is publication for a draft, which would replace the current revision.
func (r *Routes) draft(ctx context.Context, tenant, agent, revision string, published []catalog.Publication) (d *agents.Definition, replaced string, err error) {
	if !r.Catalog.HasDraft(tenant, agent, revision) {
		return nil, "", &catalog.UnknownError{Agent: agent, Revision: revision}
	}
	d, err = r.Catalog.Revision(ctx, tenant, agent, revision)
	return d, published[len(published)-1].Revision, err
}

// diff returns the unified diff of two definitions of an agent of a tenant as YAML files; from nil
// = an empty file. It is empty if they are equal.
func diff(tenant string, from, to *agents.Definition) (string, error) {
	var before []byte
	name := "/dev/null"
	if from != nil {
		var err error
		if before, err = from.YAML(); err != nil {
			return "", err
		}
		name = fileName(tenant, from)
	}
	after, err := to.YAML()
	if err != nil {
		return "", err
	}
	return udiff.ToUnified(name, fileName(tenant, to), string(before), udiff.Lines(string(before), string(after)), udiff.DefaultContextLines)
}

// fileName returns the name of a definition of an agent of a tenant in the header of a diff.
func fileName(tenant string, d *agents.Definition) string {
	return d.Name + "@" + catalog.RevisionOf(tenant, d) + ".yaml"
}
