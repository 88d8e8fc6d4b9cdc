// Package secrets replaces references of the form ${secret:NAME} in texts of definitions, and hides
// the secrets in answers. Secrets are looked up at each use and never stored. Errors contain only
// the names of secrets.
package secrets
