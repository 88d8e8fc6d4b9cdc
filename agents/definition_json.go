package agents

// definitionJSON is the JSON of a Definition, with the keys in the order of the canonical JSON. Its
// own fields take the place of those of the definition.
type definitionJSON struct {
	Name        string        `json:"name"`
	Description string        `json:"description,omitempty"`
	Model       modelsJSON    `json:"model,omitempty"`
	Fallback    *fallbackJSON `json:"fallback,omitempty"`

	plainDefinition
}

// plainDefinition is a Definition without its methods.
type plainDefinition Definition

// MarshalJSON returns the members that files have.
func (d Definition) MarshalJSON() ([]byte, error) {
	return plainJSON(definitionJSON{
		Name: d.Name, Description: d.Description, Model: modelsOf(d.Model, d.Fallback), Fallback: d.Fallback.json(), plainDefinition: plainDefinition(d),
	})
}

// UnmarshalJSON reads the output of MarshalJSON, and refuses other members.
func (d *Definition) UnmarshalJSON(data []byte) error {
	var in definitionJSON
	if err := decodeStrictly(data, &in); err != nil {
		return err
	}
	*d = Definition(in.plainDefinition)
	d.Name, d.Description, d.Fallback = in.Name, in.Description, in.Fallback.fallback()
	in.Model.split(&d.Model, &d.Fallback)
	return nil
}
