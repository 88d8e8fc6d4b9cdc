// Package sockets serves WebSockets: clients send frames that start runs, subscribe to them, steer,
// cancel and decide, and get events and answers as frames. One socket carries any number of them.
package sockets
