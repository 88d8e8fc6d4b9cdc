package api

import (
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/attachments"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/files"
)

// Files are the files of tenants, with their index. A nil Files has none.
type Files struct {
	Store *files.Store
	Index *files.Index
}

// attachments returns the files as the messages of inputs use them; nil = there are none.
func (f *Files) attachments(guard *access.Guard, meter *quota.Meter) *attachments.Attachments {
	if f == nil {
		return nil
	}
	return &attachments.Attachments{Store: f.Store, Index: f.Index, Access: guard, Meter: meter}
}
