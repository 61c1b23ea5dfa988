package layer

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/dreamguard/dreamguard/floor"
	"mvdan.cc/sh/v3/syntax"
)

// shellArguments judges the arguments of a tool that runs commands: a command as
// text, or as a list of words.
func (l *Layer) shellArguments(args map[string]json.RawMessage) floor.Decision {
	dir := l.dir
	for _, name := range []string{"workdir", "cwd", "dir", "directory", "workingdirectory"} {
		if s, ok := text(args[name]); ok && s != "" {
			dir = l.abs(l.dir, s)
		}
	}
	found := false
	var worst floor.Decision
	for _, name := range []string{"command", "cmd", "script", "code", "input", "commands"} {
		raw, ok := args[name]
		if !ok {
			continue
		}
		found = true
		var words []string
		if s, ok := text(raw); ok {
			worst = stricter(worst, l.shellIn(dir, s, 0))
		} else if json.Unmarshal(raw, &words) == nil {
			if name != "commands" {
				for i := range words {
					words[i] = quote(words[i])
				}
				words = []string{strings.Join(words, " ")}
			}
			for _, w := range words {
				worst = stricter(worst, l.shellIn(dir, w, 0))
			}
		} else if named := l.namedIn(string(raw)); named != "" {
			worst = stricter(worst, l.unclear(named+" is named in a command of an unknown form"))
		}
	}
	if named := l.mentioned("", args); !found && named != "" {
		return l.unclear(named + " is named in a command of an unknown form")
	}
	return worst
}

func quote(s string) string {
	q, err := syntax.Quote(s, syntax.LangBash)
	if err != nil {
		return "''"
	}
	return q
}

func stricter(a, b floor.Decision) floor.Decision {
	if b.Outcome > a.Outcome {
		return b
	}
	return a
}

// shell judges a command line in the layer's folder.
func (l *Layer) shell(command string) floor.Decision { return l.shellIn(l.dir, command, 0) }

// maxNesting bounds commands inside commands (sh -c, eval).
const maxNesting = 10

func (l *Layer) shellIn(dir, command string, depth int) floor.Decision {
	if len(l.sealed) == 0 {
		return floor.Decision{}
	}
	named := l.namedIn(command)
	if depth > maxNesting {
		return l.unclear("the command is nested too deep")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		if named != "" {
			return l.unclear(fmt.Sprintf("%s is named in a command that is no valid shell", named))
		}
		return floor.Decision{}
	}
	s := shellWalk{l: l, dir: dir, vars: map[string]string{}, depth: depth}
	syntax.Walk(file, s.visit)
	return s.worst
}

// shellWalk goes through one command line.
type shellWalk struct {
	l     *Layer
	dir   string // "" when it is not known
	vars  map[string]string
	depth int
	worst floor.Decision
}

func (s *shellWalk) add(d floor.Decision) { s.worst = stricter(s.worst, d) }

func (s *shellWalk) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		for _, r := range n.Redirs {
			s.redirect(n, r)
		}
	case *syntax.CallExpr:
		s.call(n)
	case *syntax.DeclClause:
		for _, a := range n.Args {
			s.assign(a)
		}
	case *syntax.ForClause:
		if w, ok := n.Loop.(*syntax.WordIter); ok {
			s.vars[w.Name.Value] = "*" // each of the words
			for _, item := range w.Items {
				if v := s.word(item); s.touches(v) != "" {
					s.vars[w.Name.Value] = v
				}
			}
		}
	case *syntax.BinaryCmd:
		if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
			s.pipe(n)
		}
	}
	return true
}

// pipe judges text that is piped into a shell or interpreter.
func (s *shellWalk) pipe(n *syntax.BinaryCmd) {
	right, ok := n.Y.Cmd.(*syntax.CallExpr)
	if !ok || len(right.Args) == 0 {
		return
	}
	name := path.Base(s.word(right.Args[0]))
	_, interpreter := interpreters[name]
	if !isShell(name) && !interpreter && name != "xargs" && name != "parallel" {
		return
	}
	if left, ok := n.X.Cmd.(*syntax.CallExpr); ok && len(left.Args) > 0 && isShell(name) {
		if cmd := path.Base(s.word(left.Args[0])); cmd == "echo" || cmd == "printf" {
			var words []string
			for _, w := range left.Args[1:] {
				words = append(words, s.word(w))
			}
			s.add(s.l.shellIn(s.dir, strings.Join(words, " "), s.depth+1))
			return
		}
	}
	var b strings.Builder
	if syntax.NewPrinter().Print(&b, n) == nil {
		if named := s.l.namedIn(b.String()); named != "" {
			s.add(s.l.unclear(fmt.Sprintf("%s is named in what is piped into %s", named, name)))
		}
	}
}

func (s *shellWalk) assign(a *syntax.Assign) {
	if a.Name == nil {
		return
	}
	if a.Value == nil {
		s.vars[a.Name.Value] = ""
		return
	}
	v := s.word(a.Value)
	if a.Append {
		v = s.vars[a.Name.Value] + v
	}
	s.vars[a.Name.Value] = v
}

// word returns what a word becomes, with * for what is not known.
func (s *shellWalk) word(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	s.parts(&b, w.Parts)
	return b.String()
}

func (s *shellWalk) parts(b *strings.Builder, parts []syntax.WordPart) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(unbackslash(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar {
				b.WriteString(ansiC(p.Value))
			} else {
				b.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			s.parts(b, p.Parts)
		case *syntax.ParamExp:
			v, known := s.vars[paramName(p)]
			switch {
			case paramName(p) == "HOME":
				b.WriteString("~")
			case paramName(p) == "PWD" && s.dir != "":
				b.WriteString(s.dir)
			case known && p.Exp == nil && p.Slice == nil && p.Repl == nil && !p.Length && !p.Excl:
				b.WriteString(v)
			default:
				b.WriteByte('*')
			}
		default:
			b.WriteByte('*')
		}
	}
}

func paramName(p *syntax.ParamExp) string {
	if p.Param == nil {
		return ""
	}
	return p.Param.Value
}

func unbackslash(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ansiC undoes the escapes of $'...'; what it does not know becomes *.
func ansiC(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out string
	if json.Unmarshal([]byte(`"`+strings.NewReplacer(`\x`, `\u00`, `"`, `\"`, `\'`, `'`).Replace(s)+`"`), &out) == nil {
		return out
	}
	return "*"
}

// touches returns the sealed file that a word may name, "" if it names none.
func (s *shellWalk) touches(word string) string {
	if word == "" {
		return ""
	}
	if !strings.ContainsAny(word, "*?[{") {
		if s.dir == "" {
			return s.l.namedIn(path.Base(word))
		}
		return s.l.sealedName(s.dir, word)
	}
	for _, w := range braces(word) {
		if strings.Trim(w, "*/.") == "" {
			continue // anything: nothing is known of it
		}
		for _, f := range s.l.sealed {
			base := strings.ToLower(filepath.Base(f.name))
			if ok, err := path.Match(strings.ToLower(path.Base(w)), base); ok || err != nil && strings.Contains(strings.ToLower(w), base) {
				return f.name
			}
		}
	}
	return ""
}

// braces expands {a,b}, at most 64 words.
func braces(w string) []string {
	open := strings.IndexByte(w, '{')
	if open < 0 {
		return []string{w}
	}
	shut := strings.IndexByte(w[open:], '}')
	if shut < 0 {
		return []string{w}
	}
	shut += open
	var out []string
	for alt := range strings.SplitSeq(w[open+1:shut], ",") {
		for _, rest := range braces(w[shut+1:]) {
			if len(out) < 64 {
				out = append(out, w[:open]+alt+rest)
			}
		}
	}
	return out
}

// certain reports whether a word is known in full.
func certain(word string) bool { return !strings.ContainsAny(word, "*?[{") }

// written judges a write to what word names.
func (s *shellWalk) written(word string) {
	f := s.touches(word)
	switch {
	case f == "":
	case certain(word) && s.dir != "":
		s.add(sealedWrite(f))
	default:
		s.add(s.l.unclear(fmt.Sprintf("%s may be what %q stands for", filepath.Base(f), word)))
	}
}

// unclear judges a use of word by a command that is not understood.
func (s *shellWalk) unclear(cmd, word string) {
	if f := s.touches(word); f != "" {
		s.add(s.l.unclear(fmt.Sprintf("%s is sealed, and what %s does to it is not known", filepath.Base(f), cmd)))
	}
}

func (s *shellWalk) redirect(n *syntax.Stmt, r *syntax.Redirect) {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.AppClob, syntax.RdrAll, syntax.AppAll, syntax.RdrAllClob, syntax.AppAllClob:
		s.written(s.word(r.Word))
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		c, ok := n.Cmd.(*syntax.CallExpr)
		if !ok || len(c.Args) == 0 {
			return
		}
		body := s.word(r.Hdoc)
		if r.Op == syntax.WordHdoc {
			body = s.word(r.Word)
		}
		name := path.Base(s.word(c.Args[0]))
		_, interpreter := interpreters[name]
		switch {
		case isShell(name):
			s.add(s.l.shellIn(s.dir, body, s.depth+1))
		case interpreter, name == "ed", name == "ex", name == "patch":
			if named := s.l.namedIn(body); named != "" {
				s.add(s.l.unclear(fmt.Sprintf("%s is named in code for %s", named, name)))
			}
		}
	}
}
