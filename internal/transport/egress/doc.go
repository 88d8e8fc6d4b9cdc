// Package egress sends requests to other hosts for tools, MCP servers and webhooks, whose
// definitions are in files. It decides which addresses may be reached, and where a redirect may
// lead.
//
// Rules:
//   - An address is checked when it is dialed, after its name was resolved. So a name that resolves
//     differently at a check and at the connection (DNS rebinding) gains nothing.
//   - Addresses that are not on the public internet are refused, unless the worker's configuration
//     allows them.
//   - A redirect may lead to a listed host only, never from https to http, and does not receive the
//     headers that the file sets for the first host.
//   - Proxies of the environment are not used: they would dial in place of this process.
//   - No request is retried here.
package egress
