// Package notes is a small library of notes about tea and coffee that can be searched and read.
package notes

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

//go:embed *.md
var files embed.FS

// mostHits bounds the results of a search.
const mostHits = 3

// Library has notes by ID, which is the name of the note's file. It does not change, so it is safe
// for concurrent use.
type Library map[string]note

type note struct {
	title, text string
	words       map[string]int // number of occurrences of each word
}

// Query is the input of a search.
type Query struct {
	Query string `json:"query" jsonschema:"words to look for"`
}

// Found is the result of a search.
type Found struct {
	Notes []Hit `json:"notes" jsonschema:"at most three, the best first"`
}

// Hit is a note in the result of a search.
type Hit struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// Key identifies a note.
type Key struct {
	ID string `json:"id" jsonschema:"the id of a note, from a search"`
}

// Note is a note with its text.
type Note struct {
	ID    string `json:"id"`
	Text  string `json:"text"`
	Title string `json:"title"`
}

// Load reads the embedded notes. The first line of a note is its title.
func Load() (Library, error) {
	notes := Library{}
	names, err := fs.Glob(files, "*.md")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		title, text, _ := strings.Cut(string(body), "\n")
		n := note{title: strings.TrimPrefix(title, "# "), text: strings.Join(strings.Fields(text), " "), words: map[string]int{}}
		for _, word := range wordsOf(string(body)) {
			n.words[word]++
		}
		notes[strings.TrimSuffix(name, ".md")] = n
	}
	return notes, nil
}

// Read returns a note by its ID. The model receives the text of the error.
func (l Library) Read(id string) (Note, error) {
	n, ok := l[id]
	if !ok {
		return Note{}, fmt.Errorf("there is no note %.80q; search for one", id)
	}
	return Note{ID: id, Title: n.title, Text: n.text}, nil
}

// Search ranks the notes by the words of the query (TF-IDF): a note ranks higher the more often it
// has a word, and the fewer notes have that word.
func (l Library) Search(query string) Found {
	scores := map[string]float64{}
	for _, word := range wordsOf(query) {
		in := 0
		for _, n := range l {
			if n.words[word] > 0 {
				in++
			}
		}
		for id, n := range l {
			if times := n.words[word]; times > 0 {
				scores[id] += (1 + math.Log(float64(times))) * math.Log(1+float64(len(l))/float64(in))
			}
		}
	}
	ids := slices.SortedFunc(maps.Keys(scores), func(a, b string) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	hits := []Hit{}
	for _, id := range ids[:min(len(ids), mostHits)] {
		hits = append(hits, Hit{ID: id, Title: l[id].title})
	}
	return Found{hits}
}

// wordsOf returns the words of a text in lower case. It omits words of fewer than four letters, which
// distinguish notes badly.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.DeleteFunc(words, func(word string) bool { return len(word) < 4 })
}
