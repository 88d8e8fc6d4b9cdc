package notes

import "testing"

func TestSearch(t *testing.T) {
	t.Parallel()
	notes, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"Why does tea turn bitter?":                           "bitterness",
		"How hot should the water be?":                        "water",
		"What is the difference between green and black tea?": "oxidation",
		"grinding COFFEE":                                     "grinding",
		"submarines":                                          "",
		"":                                                    "",
	} {
		var got string
		if hits := notes.Search(query).Notes; len(hits) > 0 {
			got = hits[0].ID
		}
		if got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	for id, n := range notes {
		if n.title == "" || n.text == "" || len(n.words) < 10 {
			t.Errorf("note %s = %+v, want a title, a text and at least 10 words", id, n)
		}
	}
}
