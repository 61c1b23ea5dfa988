package httpapi

import (
	"embed"
	"net/http"
)

// The page is plain HTML, CSS and JavaScript: there is nothing to build.
//
//go:embed page
var page embed.FS

// servePage hands out the page at / and its two files.
func servePage(mux *http.ServeMux) {
	for path, file := range map[string][2]string{
		"GET /{$}":      {"page/index.html", "text/html; charset=utf-8"},
		"GET /page.js":  {"page/page.js", "text/javascript; charset=utf-8"},
		"GET /page.css": {"page/page.css", "text/css; charset=utf-8"},
	} {
		b, err := page.ReadFile(file[0])
		if err != nil {
			panic(err) // it is built in
		}
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", file[1])
			w.Write(b)
		})
	}
}
