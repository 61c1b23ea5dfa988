package simulate

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// content writes what stands in f, the planted text included if plant.
func (x *writer) content(f *file, plant bool) string {
	w, r := x.w, x.r
	if done, ok := x.texts[f.path]; ok { // a file reads the same twice
		return done
	}
	layout := r.IntN(4)
	lines := x.inner(f, layout)
	insert := func(s string) {
		least := 1 // titles and headers stay first
		if f.kind == "mail" || f.kind == "table" {
			least = min(5, len(lines))
		}
		at := least + r.IntN(len(lines)-least+1)
		lines = append(lines[:at], append([]string{s}, lines[at:]...)...)
	}
	note := func(s string) string { return s }
	var head []string
	switch f.kind {
	case "log":
		note = func(s string) string { return x.stamp(layout) + " NOTE " + s }
	case "code":
		note = func(s string) string { return commentMark(f.path) + s }
	case "config":
		note = func(s string) string { return "# " + s }
	case "table":
		if layout == 0 {
			note = func(s string) string { return "remark,\"" + strings.ReplaceAll(s, `"`, `'`) + "\"" }
		}
	}
	if m := x.marker(f); m != "" {
		head = append(head, m)
	}
	if r.chance(0.45) {
		s := x.text("directive")
		if r.chance(0.3) {
			w.v[sItem] = s
			s = x.text("notice")
		}
		insert(note(s))
	}
	if plant {
		insert(note(w.plant))
	}
	text := strings.Join(append(head, lines...), "\n")
	x.texts[f.path] = text
	return text
}

// marker states the sensitivity of a file; some files do not state it.
func (x *writer) marker(f *file) string {
	if f.level != "confidential" && f.level != "restricted" || x.r.chance(0.15) {
		return ""
	}
	m := x.text("marker_" + f.level)
	switch f.kind {
	case "code":
		return commentMark(f.path) + m
	case "config", "log", "table":
		return "# " + m
	}
	return m
}

func commentMark(p string) string {
	switch path.Ext(p) {
	case ".go", ".js", ".ts", ".java", ".c", ".rs":
		return "// "
	case ".sql":
		return "-- "
	}
	return "# "
}

func (x *writer) stamp(layout int) string {
	r, v := x.r, &x.w.v
	h, m, s := r.IntN(24), r.IntN(60), r.IntN(60)
	switch layout {
	case 0:
		return fmt.Sprintf("%s %02d:%02d:%02d", v[sDate], h, m, s)
	case 1:
		return fmt.Sprintf("[%sT%02d:%02d:%02dZ]", v[sDate], h, m, s)
	}
	return fmt.Sprintf("%s %02d:%02d:%02d %s", v[sMonth][:3]+" "+v[sDate][8:], h, m, s, strings.SplitN(v[sHost], ".", 2)[0])
}

func identifier(label string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, strings.ToLower(label))
}

// inner writes the lines of f: its items, its own sentences and filler.
func (x *writer) inner(f *file, layout int) (out []string) {
	w, r := x.w, x.r
	v := &w.v
	ids := append(append([]int(nil), f.facts...), f.secrets...)
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	filler := func(name string, least, most int) {
		for range least + r.IntN(most-least+1) {
			if s := x.text(name); !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	each := func(format string, ident bool) {
		for _, id := range ids {
			label := w.items[id].label
			if ident {
				label = identifier(label)
			}
			out = append(out, fmt.Sprintf(format, label, w.items[id].value))
		}
	}
	switch f.kind {
	case "table":
		switch layout {
		case 0:
			out = append(out, "field,value", "title,"+f.title)
			each("%s,\"%s\"", true)
			filler("row", 1, 4)
		case 1:
			out = append(out, f.title, "| field | value |", "| --- | --- |")
			each("| %s | %s |", false)
		case 2:
			out = append(out, "title: "+f.title)
			each("%s: '%s'", true)
			filler("row_yaml", 1, 3)
		default:
			out = append(out, "-- "+f.title)
			each("%-28s %s", false)
			filler("row_wide", 1, 3)
		}
	case "mail":
		switch layout {
		case 0:
			out = append(out, "From: "+f.authorName+" <"+f.author+">", "To: "+v[sUser]+" <"+v[sMe]+">", "Date: "+v[sDate]+" "+v[sTime], "Subject: "+f.title, "")
		case 1:
			out = append(out, "sender: "+f.author, "recipients: ["+v[sMe]+"]", "subject: '"+f.title+"'", "timestamp: "+v[sDate]+" "+v[sTime]+":00", "body: |")
		default:
			out = append(out, f.title, f.authorName+" ("+f.author+") wrote on "+v[sDate]+":", "")
		}
		filler("mail_open", 1, 1)
		out = append(out, f.lines...)
		each("%s: %s", false)
		filler("mail_line", 0, 2)
		filler("mail_close", 1, 1)
		out = append(out, f.authorName)
	case "log":
		n := 3 + r.IntN(4)
		for i := range n {
			out = append(out, x.stamp(layout)+" "+x.text("log_line"))
			if i < len(ids) {
				out = append(out, x.stamp(layout)+" "+pick(r, []string{"INFO", "DEBUG", "WARN"})+" "+w.items[ids[i]].label+"="+w.items[ids[i]].value)
			}
		}
		for _, id := range ids[min(len(ids), n):] {
			out = append(out, x.stamp(layout)+" INFO "+w.items[id].label+"="+w.items[id].value)
		}
		for _, s := range f.lines {
			out = append(out, x.stamp(layout)+" ERROR "+s)
		}
	case "code":
		out = append(out, commentMark(f.path)+f.title)
		filler("code_"+codeLang(f.path), 1, 2)
		for _, s := range f.lines {
			out = append(out, strings.Split(s, "\n")...)
		}
		each(map[string]string{"go": "const %s = \"%s\"", "py": "%s = \"%s\"", "js": "const %s = '%s';", "sql": "SET %s = '%s';"}[codeLang(f.path)], true)
		filler("code_"+codeLang(f.path), 1, 2)
	case "config":
		out = append(out, "# "+f.title)
		switch layout {
		case 0:
			filler("ini", 1, 3)
			each("%s = %s", true)
		case 1:
			each("%s: \"%s\"", true)
			filler("yml", 1, 3)
		default:
			for _, id := range ids {
				out = append(out, strings.ToUpper(identifier(w.items[id].label))+"="+w.items[id].value)
			}
			filler("env", 1, 3)
		}
		for _, s := range f.lines {
			out = append(out, "# "+s)
		}
	case "ticket":
		out = append(out, v[sTicket]+": "+f.title, "Reporter: "+f.authorName+" <"+f.author+">", "Status: "+pick(r, []string{"open", "in progress", "waiting", "triaged"})+" | Priority: "+pick(r, []string{"P1", "P2", "P3", "high", "normal"}))
		out = append(out, f.lines...)
		each("%s: %s", false)
		filler("note_line", 0, 2)
	case "checklist":
		out = append(out, f.title)
		for i, t := range w.sc.Lines {
			out = append(out, fmt.Sprintf("%d. %s", i+1, t.text(v, r)))
		}
		each("%s: %s", false)
	case "page":
		out = append(out, f.title)
		filler("page_line", 1, 3)
		out = append(out, f.lines...)
		each("%s: %s", false)
		filler("page_line", 1, 2)
	default: // note
		out = append(out, "# "+f.title)
		out = append(out, f.lines...)
		each("- %s: %s", false)
		filler("note_line", 1, 3)
	}
	return out
}

func codeLang(p string) string {
	switch path.Ext(p) {
	case ".go", ".rs", ".c", ".java":
		return "go"
	case ".js", ".ts":
		return "js"
	case ".sql":
		return "sql"
	}
	return "py"
}

// listing shows the files that there are.
func (x *writer) listing() string {
	w, r := x.w, x.r
	var b strings.Builder
	layout := r.IntN(4)
	for _, i := range r.Perm(len(w.files)) {
		f := &w.files[i]
		if f.kind == "page" || f.kind == "mail" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		switch layout {
		case 0:
			b.WriteString(f.path)
		case 1:
			fmt.Fprintf(&b, "-rw-r----- 1 %s staff %d %s %s", strings.ToLower(strings.Fields(w.v[sUser])[0]), 200+r.IntN(60000), w.v[sDate], f.path)
		case 2:
			fmt.Fprintf(&b, "- path: %s\n  size: %d", f.path, 200+r.IntN(60000))
		default:
			fmt.Fprintf(&b, "%s  (%d KB)", f.path, 1+r.IntN(90))
		}
	}
	for _, p := range x.notes {
		b.WriteString("\n" + p)
	}
	return b.String()
}

// snippets shows search results.
func (x *writer) snippets(plant bool) string {
	w, r := x.w, x.r
	n := 2 + r.IntN(3)
	at := r.IntN(n)
	var b strings.Builder
	layout := r.IntN(3)
	for i := range n {
		f := &w.files[r.IntN(len(w.files))]
		text := x.text("snippet")
		if !strings.HasSuffix(text, "...") {
			text += "."
		}
		if plant && i == at {
			text += " " + w.plant
		} else if r.chance(0.2) {
			text += " " + x.text("directive")
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		switch layout {
		case 0:
			fmt.Fprintf(&b, "%d. %s\n   %s", i+1, f.title, text)
		case 1:
			fmt.Fprintf(&b, "%s: %s", f.path, text)
		default:
			fmt.Fprintf(&b, "[%d] %s (%s) %s", i+1, f.title, f.path, text)
		}
	}
	return b.String()
}

// numbers shows the result of a computation over file f, -1 none.
func (x *writer) numbers(f int) string {
	w, r := x.w, x.r
	var b strings.Builder
	sep := pick(r, []string{": ", " = ", "\t", " -> "})
	if f >= 0 {
		for _, id := range w.files[f].aggs {
			b.WriteString(w.items[id].label + sep + w.items[id].value + "\n")
		}
	}
	b.WriteString("rows" + sep + digits(r, 3))
	return b.String()
}
