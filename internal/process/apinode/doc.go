// Package apinode assembles an API node: log, agents, indexes and HTTP server. The binary api and
// perdure dev use it.
package apinode
