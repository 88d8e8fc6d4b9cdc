package policy

import (
	"net/url"

	"github.com/cedar-policy/cedar-go"

	"github.com/perdure/perdure/stream"
)

// Resource is what a caller acts on. The constructors of this file make one.
//
// Policies see the tenant, the owner and the shares of a thread, but not its ID: decisions about
// threads with the same owner and shares are equal, so a list asks once for all of them.
type Resource struct{ entity cedar.Entity }

// Tenant returns the resource for what does not exist yet.
func Tenant(name string) Resource { return resource("Tenant", name, cedar.RecordMap{}) }

// Platform returns the resource for what all tenants share.
func Platform() Resource { return resource("Platform", "", cedar.RecordMap{}) }

// Subject returns what a tenant stores about a subject.
func Subject(tenant, name string) Resource {
	return resource("Subject", tenant, cedar.RecordMap{"user": user(tenant, name)})
}

// Schedule returns a schedule with the subject of its owner.
func Schedule(tenant, owner string) Resource {
	return resource("Schedule", tenant, cedar.RecordMap{"owner": user(tenant, owner)})
}

// StoredFile returns a file, of the type File, with the subject of its owner.
func StoredFile(tenant, owner string) Resource {
	return resource("File", tenant, cedar.RecordMap{"owner": user(tenant, owner)})
}

// Agent returns an agent of a tenant; tenant "" = of the platform.
func Agent(tenant, name string) Resource {
	r := resource("Agent", tenant, cedar.RecordMap{"name": cedar.String(name)})
	r.entity.UID = cedar.NewEntityUID("Agent", cedar.String(tenantPath(tenant)+name))
	return r
}

// Tool, Model, Program and Host return what the workers have, or reach, for the agents of all tenants. The
// name of a host has its port if that is not the default of the scheme.
func Tool(name string) Resource    { return worker("Tool", name) }
func Model(name string) Resource   { return worker("Model", name) }
func Program(name string) Resource { return worker("Program", name) }
func Host(name string) Resource    { return worker("Host", name) }

// worker returns a resource with a name that belongs to the platform.
func worker(kind cedar.EntityType, name string) Resource {
	r := resource(kind, "", cedar.RecordMap{"name": cedar.String(name)})
	r.entity.UID = cedar.NewEntityUID(kind, cedar.String(name))
	return r
}

// Thread returns a thread with its owner and shares.
func Thread(tenant string, a *stream.Access) Resource {
	attributes := cedar.RecordMap{}
	for level, attribute := range map[stream.AccessLevel]cedar.String{
		stream.AccessRead: "readers", stream.AccessRun: "runners", stream.AccessDecide: "deciders", stream.AccessManage: "managers",
	} {
		var grantees []cedar.Value
		for _, share := range a.Shares {
			if share.Access == level {
				grantees = append(grantees, grantee(tenant, share))
			}
		}
		attributes[attribute] = cedar.NewSet(grantees...)
	}
	if a.Owner != nil {
		attributes["owner"] = user(tenant, *a.Owner)
	}
	return resource("Thread", tenant, attributes)
}

// grantee returns the entity that a share is for.
func grantee(tenant string, share stream.Share) cedar.EntityUID {
	switch {
	case share.Everyone:
		return cedar.NewEntityUID("Tenant", cedar.String(tenant))
	case share.Role != "":
		return cedar.NewEntityUID("Role", cedar.String(share.Role))
	}
	return user(tenant, share.Subject)
}

// resource returns a resource of a tenant.
func resource(kind cedar.EntityType, tenant string, attributes cedar.RecordMap) Resource {
	attributes["tenant"] = cedar.String(tenant)
	return Resource{cedar.Entity{UID: cedar.NewEntityUID(kind, cedar.String(tenant)), Attributes: cedar.NewRecord(attributes)}}
}

// user returns the entity of a subject.
func user(tenant, subject string) cedar.EntityUID {
	return cedar.NewEntityUID("User", cedar.String(tenantPath(tenant)+subject))
}

// tenantPath returns the beginning of the names in a tenant. The tenant is escaped, so the first
// slash ends it.
func tenantPath(tenant string) string { return url.PathEscape(tenant) + "/" }
