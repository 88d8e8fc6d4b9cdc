// Package secrets replaces references in texts of definitions: to secrets as ${secret:NAME}, to
// secrets of the caller's tenant as ${tenantSecret:NAME}, and to the caller as {caller.tenant} and
// {caller.subject}. It hides secrets in answers. Secrets are looked up at each use and never
// stored. Errors contain only the names of secrets.
package secrets
