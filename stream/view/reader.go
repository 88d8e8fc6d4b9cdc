package view

import "github.com/perdure/perdure/stream"

// reader says for whom a projection is.
type reader struct {
	profile  stream.Profile // "" = the generation of the run's input
	from     *stream.Cursor // nil = from the run's first record
	followed bool           // it did not send the run's input
	heal     bool           // a snapshot has to precede the run's last event
	joining  bool           // it has nothing, and gets what the log has by now in snapshots
}

// readerOf returns the reader with a cursor, or without one (nil).
func readerOf(profile stream.Profile, from *stream.Cursor) reader {
	r := reader{profile: profile, from: from}
	if from != nil {
		r.profile, r.followed, r.heal = from.Profile, from.Followed, from.Heal
	}
	return r
}
