package main

import (
	"cmp"
	"embed"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"
)

//go:embed notes/*.md
var files embed.FS

// mostHits bounds what a search finds.
const mostHits = 3

type note struct {
	title, text string
	words       map[string]int // how often each one is there
}

// library has notes by id.
type library map[string]note

// hit is a note that a search has found.
type hit struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// loadNotes reads a folder of Markdown files: the first line is a note's title.
func loadNotes(from fs.FS) (library, error) {
	notes := library{}
	names, err := fs.Glob(from, "notes/*.md")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		body, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, err
		}
		title, text, _ := strings.Cut(string(body), "\n")
		n := note{title: strings.TrimPrefix(title, "# "), text: strings.Join(strings.Fields(text), " "), words: map[string]int{}}
		for _, word := range wordsOf(string(body)) {
			n.words[word]++
		}
		notes[strings.TrimSuffix(path.Base(name), ".md")] = n
	}
	return notes, nil
}

// search finds the notes that have most of the query's words, rare ones above all.
func (l library) search(query string) []hit {
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
	hits := []hit{}
	for _, id := range ids[:min(len(ids), mostHits)] {
		hits = append(hits, hit{ID: id, Title: l[id].title})
	}
	return hits
}

// wordsOf are the words of four letters or more: shorter ones tell notes apart badly.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.DeleteFunc(words, func(word string) bool { return len(word) < 4 })
}
