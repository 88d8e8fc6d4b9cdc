package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/durations"
	"github.com/perdure/perdure/stream"
)

// Errors of publishing.
var (
	// ErrKept: the current definition was published over HTTP, and the directory has a different
	// one.
	ErrKept = errors.New("catalog: the definition that was published over HTTP stays current")
	// ErrMismatch: the agent's current revision is not the one that the publisher expects.
	ErrMismatch = errors.New("catalog: another revision is current")
	// ErrTaken: the platform has an agent of the name, which a tenant cannot give to a new agent.
	ErrTaken = errors.New("catalog: the platform has an agent of this name")
)

// Publish makes a definition of a directory the current one of its agent, and returns its revision.
// If the current definition was published over HTTP and is a different one, it stays, and Publish
// fails with ErrKept, except with force. If it is the same one, the directory becomes its source;
// the directory may replace it from then on. The directory already is the source of the definition
// that it has published last: to restore that one over HTTP changes nothing for it.
//
// Nodes that start together publish concurrently. If their directories differ, the last publication
// is current.
func (c *Catalog) Publish(ctx context.Context, d *agents.Definition, force bool) (revision string, err error) {
	return c.publish(ctx, d, Publication{Source: SourceDirectory}, func(last, own Publication) error {
		if last.Source == SourcePut && last.Revision != d.Revision() && last.Revision != own.Revision && !force {
			return fmt.Errorf("%w: %s", ErrKept, d.Name)
		}
		return nil
	})
}

// Put makes a definition the current one of an agent of a tenant ("" = of the platform), as a
// publication of a caller, and returns its revision. by nil = an anonymous caller. note is what the
// caller says about the change; "" = nothing. It calls expected with the current revision ("" =
// none), and fails with ErrMismatch if expected returns false. No other publication of the agent
// happens between that call and this publication. To put the current definition again changes
// nothing. A new agent of a tenant with a name of the platform is ErrTaken.
func (c *Catalog) Put(
	ctx context.Context, tenant string, d *agents.Definition, by *auth.Principal, note string, expected func(current string) bool,
) (revision string, err error) {
	return c.publish(ctx, d, Publication{Tenant: tenant, Source: SourcePut, By: by, Note: note}, func(last, _ Publication) error {
		if tenant != "" && last.Number == 0 {
			if err := c.checkName(ctx, d.Name); err != nil {
				return err
			}
		}
		if !expected(last.Revision) {
			return fmt.Errorf("%w: %s", ErrMismatch, d.Name)
		}
		return nil
	})
}

// checkName returns ErrTaken if the platform has an agent of a name.
func (c *Catalog) checkName(ctx context.Context, name string) error {
	last, err := c.lastPublication(ctx, addressOf("", name))
	if err == nil && last.Number > 0 {
		err = fmt.Errorf("%w: %s", ErrTaken, name)
	}
	return err
}

// publish creates the next publication, with the tenant, the source and the author of p, and waits
// until this process sees it. Before, check must return nil for the last publication, and for the
// last one of a directory (own). If the revision is current, and the same source has made it current
// or the last publication of the directory has it, publish does nothing and does not call check: the
// request is a repetition.
func (c *Catalog) publish(ctx context.Context, d *agents.Definition, p Publication, check func(last, own Publication) error) (string, error) {
	body, err := agents.Encode(d)
	if err != nil {
		return "", err
	}
	agent, revision, isStored := addressOf(p.Tenant, d.Name), RevisionOf(p.Tenant, d), false
	for {
		all, err := c.storedPublications(ctx, agent)
		if err != nil {
			return "", err
		}
		last, own := latest(all), latest(slices.DeleteFunc(slices.Clone(all), func(p Publication) bool { return p.Source != SourceDirectory }))
		isOwn := p.Source == SourceDirectory && own.Revision == revision
		if last.Revision == revision && (last.Source == p.Source || isOwn) {
			return revision, c.await(ctx, agent, last.Number)
		}
		if err := check(last, own); err != nil {
			return "", err
		}
		if !isStored {
			if err := c.store(ctx, agent, revision, body); err != nil {
				return "", err
			}
			isStored = true
		}
		p.Number, p.Revision, p.Bytes = last.Number+1, revision, int64(len(body))
		err = c.append(ctx, agent, p)
		if err == nil {
			return revision, c.await(ctx, agent, last.Number+1)
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return "", fmt.Errorf("catalog: publish %s: %w: %w", d.Name, stream.ErrUnavailable, err)
		}
		if err := durations.Sleep(ctx, pollInterval); err != nil { // another publisher was faster, and the replica that answers may lag
			return "", fmt.Errorf("catalog: publish %s: %w", d.Name, err)
		}
	}
}

// store writes a definition, unless the bucket has it.
func (c *Catalog) store(ctx context.Context, agent address, revision string, body []byte) error {
	_, err := c.kv.Create(ctx, agent.definitionKey(revision), body)
	if err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return fmt.Errorf("catalog: publish %s: %w: %w", agent.name, stream.ErrUnavailable, err)
	}
	return nil
}

// append creates the key of a publication. It fails with jetstream.ErrKeyExists if another
// publisher has created it.
func (c *Catalog) append(ctx context.Context, agent address, p Publication) error {
	body, err := json.Marshal(publication{Tenant: p.Tenant, Revision: p.Revision, Source: p.Source, By: p.By, Bytes: p.Bytes, Note: p.Note})
	if err != nil {
		return err
	}
	_, err = c.kv.Create(ctx, agent.publishedKeys()+strconv.FormatUint(p.Number, 10), body)
	return err
}

// lastPublication reads an agent's last publication from the bucket; its number is 0 if there is
// none.
func (c *Catalog) lastPublication(ctx context.Context, agent address) (last Publication, err error) {
	all, err := c.storedPublications(ctx, agent)
	return latest(all), err
}

// latest returns the publication with the largest number; the zero value if there is none.
func latest(all []Publication) (last Publication) {
	for _, p := range all {
		if p.Number > last.Number {
			last = p
		}
	}
	return last
}

// storedPublications reads all publications of an agent from the bucket, in the order in which they
// were written. A watch delivers all keys of the agent, and then nil.
func (c *Catalog) storedPublications(ctx context.Context, agent address) (all []Publication, err error) {
	w, err := c.kv.Watch(ctx, agent.publishedKeys()+"*")
	if err != nil {
		return nil, fmt.Errorf("catalog: %s: %w: %w", agent.name, stream.ErrUnavailable, err)
	}
	defer func() { _ = w.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("catalog: %s: %w", agent.name, context.Cause(ctx))
		case entry, ok := <-w.Updates():
			if !ok {
				return nil, fmt.Errorf("catalog: %s: %w: the watch ended", agent.name, stream.ErrUnavailable)
			}
			if entry == nil {
				return all, nil
			}
			if _, p, ok := decodePublication(entry); ok {
				all = append(all, p)
			}
		}
	}
}
