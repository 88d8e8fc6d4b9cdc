package filewatch

import (
	"fmt"
	"testing"
)

// TestChangesNameEntries: an observer gets the content in use without names, and for each later
// content the names that it has added, removed and changed.
func TestChangesNameEntries(t *testing.T) {
	t.Parallel()
	var c Changes
	var got []string
	c.Take("1", map[string]string{"ann": "a", "bob": "b", "eve": "e"})
	c.Observe(func(change Change) { got = append(got, fmt.Sprint(change)) })
	c.Take("2", map[string]string{"ann": "a", "bob": "B", "joe": "j"})
	c.Take("3", nil)
	want := fmt.Sprint([]string{"{1 [] [] []}", "{2 [joe] [eve] [bob]}", "{3 [] [ann bob joe] []}"})
	if fmt.Sprint(got) != want {
		t.Errorf("changes: got %s, want %s", got, want)
	}
	var without Changes
	without.Observe(func(change Change) { t.Errorf("without a file: got %v, want no change", change) })
}
