package formats

import (
	"io"
	"path/filepath"
	"strings"
)

// baseName is the name of a file without folder and endings.
func baseName(name string) string {
	b := filepath.Base(filepath.ToSlash(name))
	for _, ext := range []string{".gz", ".jsonl", ".ndjson", ".json"} {
		b = strings.TrimSuffix(b, ext)
	}
	if b == "" || b == "." || b == "/" {
		return "input"
	}
	return b
}

// stemmed is a file with the name that its runs' ids take.
type stemmed struct {
	io.Reader
	stem string
}

// stemOf is the name in the ids of runs that have none of their own.
func stemOf(r io.Reader, name string) string {
	if s, ok := r.(stemmed); ok {
		return s.stem
	}
	return baseName(name)
}

// Stems returns, in the same order, a name for each file that stands in the ids
// of its runs, see [ImportAs]: that of the file without endings, and where
// several files share it, as in p/chat.json and q/chat.json, with as many folders
// as tell them apart. It does not depend on the order of the paths. Only the same
// file named twice has the same name twice.
func Stems(paths []string) []string {
	full := make([]string, len(paths))
	sharing := map[string][]string{} // different files by their plain name
	seen := map[string]bool{}
	for i, p := range paths {
		full[i] = p
		if abs, err := filepath.Abs(p); err == nil {
			full[i] = abs
		}
		full[i] = filepath.ToSlash(full[i])
		if !seen[full[i]] {
			seen[full[i]] = true
			sharing[baseName(p)] = append(sharing[baseName(p)], full[i])
		}
	}
	stems := map[string]string{}
	for base, files := range sharing {
		if len(files) == 1 {
			stems[files[0]] = base
			continue
		}
		tellApart(files, stems)
	}
	out := make([]string, len(paths))
	for i := range paths {
		out[i] = stems[full[i]]
	}
	return out
}

// tellApart adds to stems the shortest names of the same form by which all files
// differ. It knows an end: whole paths with endings are different.
func tellApart(files []string, stems map[string]string) {
	depth := 1
	for _, f := range files {
		depth = max(depth, strings.Count(f, "/"))
	}
	for _, last := range []func(string) string{baseName, filepath.Base} {
		for folders := 1; folders <= depth; folders++ {
			names := map[string]string{}
			for _, f := range files {
				parts := strings.Split(f, "/")
				from := max(len(parts)-1-folders, 0)
				names[strings.TrimPrefix(strings.Join(append(parts[from:len(parts)-1:len(parts)-1], last(f)), "/"), "/")] = f
			}
			if len(names) == len(files) {
				for name, f := range names {
					stems[f] = name
				}
				return
			}
		}
	}
}
