// Package secrets fills ${secret:NAME} in what files say, and takes the values out again of what
// comes back. Values are looked up when they are used and kept nowhere else; errors have names only.
package secrets
