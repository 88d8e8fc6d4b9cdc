package api

import "github.com/perdure/perdure/api/systemroutes"

// newSystem returns the routes that describe the system.
func (s *Server) newSystem() *systemroutes.Routes {
	return &systemroutes.Routes{
		Writer: s.Writer, Environment: s.Environment, Access: s.access, Log: s.Log, Temporal: s.Temporal,
		Started: s.started, Workers: s.Workers, ModelCalls: s.ModelCalls, Checks: s.checkReadiness, Logger: s.logger,
		Node: func() systemroutes.Node {
			return systemroutes.Node{
				Streams: s.streams.OpenOfAll(), MaxStreams: s.MaxStreams, Sockets: s.sockets.OpenOfAll(), MaxSockets: s.MaxSockets,
			}
		},
	}
}
