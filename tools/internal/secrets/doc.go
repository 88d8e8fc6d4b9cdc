// Package secrets replaces ${secret:NAME} in texts of definitions by the secrets, and hides the
// secrets in answers. Values are looked up when they are used, and are not stored; errors have
// names only.
package secrets
