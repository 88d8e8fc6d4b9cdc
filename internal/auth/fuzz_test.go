package auth_test

import (
	"net/http"
	"testing"

	"github.com/perdure/perdure/internal/auth"
)

// FuzzBearer: whatever the header fields contain, only a well-formed token is returned as one.
func FuzzBearer(f *testing.F) {
	f.Add("Bearer abc", "")
	f.Add("", "ag-ui.perdure.v1, bearer.abc")
	f.Add("Bearer a b", "bearer.")
	f.Add("Basic \xff", ",,bearer.\x00,")
	f.Fuzz(func(t *testing.T, authorization, protocols string) {
		h := http.Header{"Upgrade": {"websocket"}}
		if authorization != "" {
			h.Set("Authorization", authorization)
		}
		if protocols != "" {
			h.Set("Sec-WebSocket-Protocol", protocols)
		}
		if token, err := auth.Bearer(h); (err == nil) != auth.IsToken(token) {
			t.Errorf("Bearer = %q, %v, want an error unless it is a token", token, err)
		}
	})
}
