// Package assertion signs assertions: JSON Web Tokens that tell the server of a tool for whom a call
// is made. A server verifies them with any library for JWTs, and the public keys of the API.
//
//	private keys (PEM) ──► Signer ──assertion──► HTTP tool, MCP server
//	                         └──public keys──► announcement ──► API ──/.well-known/jwks.json──► verifier
//
// The rules:
//
//   - Only workers have the private keys. They announce the public ones.
//   - All keys are published. The newest one signs after it has been published for publishTime, so
//     that verifiers that cache the set have it by then.
//   - An assertion names its audience and expires soon. Each attempt of a call has its own.
//   - A model chooses nothing in an assertion, except which tool is called.
package assertion
