// Package egress is how whatever files declare, tools and webhooks, reaches other hosts: with whom
// it may talk, and where a redirect may lead.
//
// The rules:
//
//   - An address is judged when it is dialed, after its name was resolved: a name that changes what
//     it stands for between a check and the connection gains nothing.
//   - Addresses that are not of the public internet are refused, unless the worker was told otherwise.
//   - A redirect may lead to a host that was named, never from https to http, and takes no headers
//     along that the file gives to the first host.
//   - Proxies in the environment are not used: they would dial in our place.
//   - Nothing here retries.
package egress
