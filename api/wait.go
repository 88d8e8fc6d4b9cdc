package api

import "github.com/perdure/perdure/api/eventroutes"

// eventRoutes returns the routes of events and of the runs that wait for them.
func (s *Server) eventRoutes() *eventroutes.Routes {
	return &eventroutes.Routes{Writer: s.Writer, Reader: s.Reader, Store: s.Events, Waits: s.Waits, Access: s.access, Sources: s.Sources, Rates: s.rates}
}
