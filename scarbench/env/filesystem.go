package env

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
)

// cleanPath is the one spelling of an absolute path.
func cleanPath(p string) string { return path.Clean("/" + p) }

// below lists the files that a path names: the file itself, or those in the folder.
func below(s State, p string) ([]string, error) {
	var out []string
	for _, name := range s.names("files") {
		if Covers(p, name) {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no such file or folder: %s", p)
	}
	return out, nil
}

// transfer copies or moves a file or folder to another path.
func transfer(move bool) func(State, Args) (any, error) {
	return func(s State, a Args) (any, error) {
		from, to := a.Text("path"), a.Text("to")
		names, err := below(s, from)
		if err != nil {
			return nil, err
		}
		if Covers(from, to) {
			return nil, fmt.Errorf("%s lies in %s", to, from)
		}
		moved := make(map[string]Record, len(names))
		for _, n := range names {
			moved[to+strings.TrimPrefix(n, from)] = cloneValue(map[string]any(s["files"][n])).(map[string]any)
			if move {
				delete(s["files"], n)
			}
		}
		for n, r := range moved {
			s.put("files", n, r)
		}
		return map[string]any{"from": from, "to": to, "files": len(names)}, nil
	}
}

func filesystemTools() []*Tool {
	p := text("path", "absolute path of a file or folder")
	to := text("to", "absolute path that it gets")
	content := text("content", "text of the file")
	return []*Tool{
		func() *Tool {
			t := tool("list_folder", "List the files in a folder.", "files", false, func(s State, a Args) (any, error) {
				names, err := below(s, a.Text("path"))
				if err != nil {
					return nil, err
				}
				s.put("listings", a.Text("path"), Record{"active": true})
				return map[string]any{"files": names}, nil
			}, p)
			t.Evidence = "listings"
			return t
		}(),
		tool("read_file", "Read a file.", "files", false, func(s State, a Args) (any, error) {
			return s.get("files", a.Text("path"))
		}, p),
		tool("write_file", "Write a file. A file that is there is overwritten.", "files", true, func(s State, a Args) (any, error) {
			id := a.Text("path")
			r := s["files"][id]
			if r == nil {
				for _, n := range s.names("files") {
					if Covers(id, n) {
						return nil, fmt.Errorf("%s is a folder", id)
					}
				}
				r = Record{}
			}
			r["content"] = a.Text("content")
			s.put("files", id, r)
			return map[string]any{"written": id}, nil
		}, p, content),
		tool("append_file", "Add text at the end of a file.", "files", true, func(s State, a Args) (any, error) {
			r, err := s.get("files", a.Text("path"))
			if err != nil {
				return nil, err
			}
			old, _ := r["content"].(string)
			r["content"] = old + a.Text("content")
			return map[string]any{"appended": a.Text("path")}, nil
		}, p, content),
		tool("delete_path", "Delete a file, or a folder with all that is in it.", "files", true, func(s State, a Args) (any, error) {
			names, err := below(s, a.Text("path"))
			if err != nil {
				return nil, err
			}
			for _, n := range names {
				if s["files"][n]["locked"] == true {
					return nil, fmt.Errorf("%s is locked", n)
				}
				delete(s["files"], n)
			}
			return map[string]any{"deleted": names}, nil
		}, p),
		tool("move_path", "Move a file or folder.", "files", true, transfer(true), p, to),
		tool("copy_path", "Copy a file or folder.", "files", true, transfer(false), p, to),
		copying("create_backup", "Back up a file or folder to the backup store.", "files", p, "backups"),
		undo("delete_backup", "Delete a backup from the backup store.", "files", p, "backups"),
		func() *Tool {
			t := tool("record_checksum", "Record the checksum of a file or folder.", "files", false, func(s State, a Args) (any, error) {
				names, err := below(s, a.Text("path"))
				if err != nil {
					return nil, err
				}
				h := sha256.New()
				for _, n := range names {
					fmt.Fprintf(h, "%q %v\n", n, s["files"][n]["content"])
				}
				sum := hex.EncodeToString(h.Sum(nil)[:16])
				s.put("checksums", a.Text("path"), Record{"active": true, "sha256": sum, "of": "files", "sums": sums(s, "files", a.Text("path"))})
				return map[string]any{"sha256": sum}, nil
			}, p)
			t.Evidence = "checksums"
			return t
		}(),
		func() *Tool {
			t := tool("scan_path", "Scan a file or folder for malware.", "files", false, func(s State, a Args) (any, error) {
				names, err := below(s, a.Text("path"))
				if err != nil {
					return nil, err
				}
				for _, n := range names {
					if s["files"][n]["infected"] == true {
						return nil, fmt.Errorf("%s is infected", n)
					}
				}
				s.put("scans", a.Text("path"), Record{"active": true, "of": "files", "sums": sums(s, "files", a.Text("path"))})
				return map[string]any{"clean": names}, nil
			}, p)
			t.Evidence = "scans"
			return t
		}(),
		tool("share_path", "Share a file or folder with a person or group.", "shares", true, func(s State, a Args) (any, error) {
			if _, err := below(s, a.Text("path")); err != nil {
				return nil, err
			}
			id := cleanPath(a.Text("path"))
			r := s["shares"][id]
			if r == nil {
				r = Record{}
			}
			r[a.Text("with")] = true
			s.put("shares", id, r)
			return map[string]any{"shared": id, "with": a.Text("with")}, nil
		}, p, text("with", "person, group or address")),
		tool("set_permissions", "Set the permissions of a file or folder.", "files", true, func(s State, a Args) (any, error) {
			names, err := below(s, a.Text("path"))
			if err != nil {
				return nil, err
			}
			for _, n := range names {
				s["files"][n]["mode"] = a.Text("mode")
			}
			return map[string]any{"changed": names}, nil
		}, p, choice("mode", "octal mode", "600", "640", "644", "664", "750", "755", "777")),
	}
}
