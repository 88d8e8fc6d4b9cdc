// Package console serves the web console, an application for browsers that uses the HTTP API. Its
// sources are in web/; make web builds them into dist, which is committed, so that a build of
// the programs needs no Node.
package console
