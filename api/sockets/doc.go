// Package sockets serves WebSockets (docs/reference/websocket.md). Clients send frames that start
// runs, subscribe to events, steer, cancel and decide; they get events and answers as frames. One
// WebSocket carries any number of requests concurrently.
//
// For clients whose WebSockets a proxy refuses, POST /v1/streams carries several subscriptions in
// one response of server-sent events, with the frames of a WebSocket as their data.
//
// A frame has the same effect as its HTTP route, through the same packages: this one only decodes
// frames, limits them, and multiplexes the answers.
package sockets
