package agui

// fields implements fielder. Parts of an unknown type have only unknown members.
func (p *ContentPart) fields(v visitor) {
	v.variant("type", (*string)(&p.Type), partTypes)
	switch p.Type {
	case PartText:
		v.text("text", &p.Text, required)
	case PartImage, PartAudio, PartVideo, PartDocument:
		v.object("source", oneOf(&p.Source), required)
	default:
		v.unknown(&p.Unknown)
		return
	}
	v.text("id", &p.ID, optional)
	v.raw("metadata", &p.Metadata, rawOptional)
	v.unknown(&p.Unknown)
}

// fields implements fielder.
func (s *PartSource) fields(v visitor) {
	v.variant("type", (*string)(&s.Type), sourceTypes)
	switch s.Type {
	case SourceData:
		v.text("value", &s.Value, required)
		v.text("mimeType", &s.MimeType, required)
	case SourceURL:
		v.text("value", &s.Value, required)
		v.text("mimeType", &s.MimeType, optional)
	case SourceFile:
		v.text("value", &s.Value, required)
		v.text("provider", &s.Provider, optional)
		v.text("mimeType", &s.MimeType, optional)
	}
	v.unknown(&s.Unknown)
}
