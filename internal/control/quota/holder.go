package quota

// holder is who takes places of a Room, or bytes of Bytes: a tenant, or with a subject one of its
// subjects.
type holder struct{ tenant, subject string }
