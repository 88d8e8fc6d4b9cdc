package view

import "github.com/perdure/perdure/stream"

// reader is who a projection is for.
type reader struct {
	profile  stream.Profile // empty = as the run's own input asked for
	from     *stream.Cursor // nil = from the run's start
	followed bool           // did not send the run's input
	heal     bool           // is owed a snapshot before the run's end
	joining  bool           // has nothing, and is shown what the log has by now in snapshots
}

// readerOf returns who comes back with a cursor, or comes for the first time.
func readerOf(profile stream.Profile, from *stream.Cursor) reader {
	r := reader{profile: profile, from: from}
	if from != nil {
		r.profile, r.followed, r.heal = from.Profile, from.Followed, from.Heal
	}
	return r
}
