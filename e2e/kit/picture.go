package kit

import (
	"flag"
	"os"
	"path/filepath"
)

// screenshots is the directory of the pictures of the guides; "" = no pictures are written.
var screenshots = flag.String("screenshots", "", "write the pictures of the guides to this absolute directory")

// maxPicture is the size in bytes that a picture of a guide may have.
const maxPicture = 80 << 10

// Picture writes a picture of the page, in a window of that size in pixels, to the PNG file of that
// name, if the flag -screenshots is set. It fails the test if the file has more than 80 KB.
func (p *Tab) Picture(name string, width, height int) {
	t := p.browser.t
	t.Helper()
	if *screenshots == "" {
		return
	}
	file := filepath.Join(*screenshots, name+".png")
	p.do(map[string]any{"picture": file, "size": map[string]int{"width": width, "height": height}})
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxPicture {
		t.Errorf("%s has %d bytes, want at most %d: make the window smaller", file, info.Size(), maxPicture)
	}
}

// PreferColors sets the color scheme that the user prefers: "light" or "dark".
func (p *Tab) PreferColors(scheme string) {
	p.browser.t.Helper()
	p.do(map[string]any{"emulate": map[string]string{"colorScheme": scheme}})
}
