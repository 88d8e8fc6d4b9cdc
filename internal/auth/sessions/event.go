package sessions

import "github.com/perdure/perdure/internal/auth"

// End is why a session was ended before its time.
type End string

// The reasons why sessions end before their time.
const (
	EndedByUser     End = "signed out"
	EndedByProvider End = "ended by the provider"
	EndedByRefusal  End = "the provider refuses to renew the claims"
	EndedBySignIn   End = "replaced by a sign-in of the same browser"
	EndedByDeletion End = "ended by the deletion of the subject"
	EndedByLimit    End = "replaced by a later session of the user"
)

// Event is a sign-in, or the end of a session before its time.
type Event struct {
	Principal auth.Principal
	// Ended is why the session has ended; "" = it has begun.
	Ended End
}
