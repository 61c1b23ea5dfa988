package layer

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func isShell(name string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash"}, name)
}

// interpreters maps a language's interpreter to its options that take code.
var interpreters = map[string][]string{
	"python": {"-c"}, "python2": {"-c"}, "python3": {"-c"}, "pypy": {"-c"}, "pypy3": {"-c"},
	"node": {"-e", "--eval", "-p", "--print"}, "nodejs": {"-e", "-p"}, "bun": {"-e", "--eval"}, "deno": {"eval"},
	"ruby": {"-e"}, "perl": {"-e", "-E"}, "php": {"-r"}, "lua": {"-e"}, "Rscript": {"-e"}, "osascript": {"-e"}, "awk": nil, "gawk": nil, "mawk": nil, "tclsh": nil,
}

// prefixes are commands that run another one; the number is how many words of
// their own they take before it, options aside.
var prefixes = map[string]int{
	"sudo": 0, "doas": 0, "env": 0, "command": 0, "builtin": 0, "exec": 0, "nohup": 0, "time": 0, "nice": 0, "ionice": 0, "setsid": 0,
	"stdbuf": 0, "busybox": 0, "toybox": 0, "timeout": 1, "chroot": 1, "flock": 1, "watch": 0, "unbuffer": 0, "strace": 0, "xargs": 0,
}

// readers do not write the files they are given, unless an option says so.
var readers = map[string]bool{}

func init() {
	for w := range strings.FieldsSeq("cat tac less more head tail grep egrep fgrep rg ag wc diff cmp comm ls stat file sha1sum sha256sum sha512sum md5sum b2sum cksum bat od xxd hexdump strings sort uniq cut nl fold fmt column paste join tr rev echo printf test [ true false : pwd cd pushd popd basename dirname realpath readlink jq yamllint jsonlint dreamguard which type du df export return exit wait sleep read set unset shift") {
		readers[w] = true
	}
}

// call judges one simple command.
func (s *shellWalk) call(n *syntax.CallExpr) {
	for _, a := range n.Assigns {
		s.assign(a)
	}
	words := make([]string, len(n.Args))
	for i, w := range n.Args {
		words[i] = s.word(w)
	}
	if len(words) > 0 {
		s.run(words)
	}
}

// run judges a command by its words.
func (s *shellWalk) run(words []string) {
	name := path.Base(words[0])
	args := words[1:]
	if skip, ok := prefixes[name]; ok {
		s.prefixed(name, args, skip)
		return
	}
	switch {
	case strings.ContainsAny(words[0], "*?") && name == "*":
		for _, a := range args { // the command itself is not known
			s.unclear("the command", a)
		}
	case name == "cd" || name == "pushd":
		s.changeDir(args)
	case name == "eval" || name == "source" && len(args) > 0 || name == ".":
		if name == "eval" {
			s.add(s.l.shellIn(s.dir, strings.Join(args, " "), s.depth+1))
		}
	case isShell(name):
		s.code(name, args, []string{"-c"}, true)
	case interpreters[name] != nil && !(name == "perl" && hasShort(args, 'i')):
		s.code(name, args, interpreters[name], false)
	default:
		s.fileCommand(name, args)
	}
}

// prefixed judges the command that another one runs.
func (s *shellWalk) prefixed(name string, args []string, skip int) {
	for i, a := range args {
		switch {
		case strings.HasPrefix(a, "-"), name != "exec" && strings.Contains(a, "=") && !strings.HasPrefix(a, "/"):
		case skip > 0:
			skip--
		default:
			// An option before may have taken this word as its value: both count.
			s.run(args[i:])
			if i > 0 && strings.HasPrefix(args[i-1], "-") && i+1 < len(args) {
				s.run(args[i+1:])
			}
			return
		}
	}
}

func (s *shellWalk) changeDir(args []string) {
	for _, a := range args {
		if strings.HasPrefix(a, "-") && a != "-" {
			continue
		}
		if !certain(a) || a == "-" || s.dir == "" {
			s.dir = ""
			return
		}
		s.dir = s.l.abs(s.dir, a)
		return
	}
	s.dir = s.l.abs(s.l.dir, "~/")
}

// code judges a shell or interpreter that is given code or a script.
func (s *shellWalk) code(name string, args []string, options []string, shell bool) {
	for i, a := range args {
		code := ""
		for _, o := range options {
			switch {
			case a == o || shell && strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.HasSuffix(a, "c"):
				if i+1 < len(args) {
					code = args[i+1]
				}
			case len(o) == 2 && strings.HasPrefix(a, o):
				code = a[2:]
			case strings.HasPrefix(a, o+"="):
				code = a[len(o)+1:]
			}
		}
		if code == "" {
			continue
		}
		if shell {
			s.add(s.l.shellIn(s.dir, code, s.depth+1))
			return
		}
		if f := s.l.namedIn(code + " " + strings.Join(args[i+1:], " ")); f != "" {
			s.interpreted(name, code, f)
		}
		return
	}
	for _, a := range args {
		s.unclear(name, a)
	}
}

// interpreted judges code of another language that names a sealed file.
func (s *shellWalk) interpreted(name, code, file string) {
	lower := strings.ToLower(strings.ReplaceAll(code, " ", ""))
	for _, w := range []string{"write", "'w", "\"w", "'a'", "\"a\"", "'r+", "\"r+", "dump(", "os.remove", "unlink", "rename", "replace(", "shutil", "truncate", "fs.rm", "copyfile", "file.open", "io.open", "spurt", ">"} {
		if strings.Contains(lower, w) {
			d := sealedWrite(file)
			d.Reason = fmt.Sprintf("%s would be written by code for %s: %s", file, name, d.Reason)
			s.add(d)
			return
		}
	}
	s.add(s.l.unclear(fmt.Sprintf("%s is named in code for %s", file, name)))
}

// fileCommand judges a command that works on files.
func (s *shellWalk) fileCommand(name string, args []string) {
	operands := operandsOf(args)
	last := ""
	if len(operands) > 0 {
		last = operands[len(operands)-1]
	}
	switch name {
	case "tee", "sponge", "truncate", "shred", "rm", "unlink", "rmdir", "fallocate", "install", "mkfifo", "mknod", "crudini", "dasel", "gio", "trash":
		for _, a := range operands {
			s.written(a)
			s.folder(name, a)
		}
		if name == "install" {
			s.into(operands, args)
		}
	case "cp", "scp", "rsync", "ln", "link":
		if name == "ln" || name == "link" {
			for _, a := range operands[:max(0, len(operands)-1)] {
				s.unclear(name+" (a second name)", a)
			}
		}
		s.written(last)
		s.into(operands, args)
	case "mv", "rename":
		for _, a := range operands {
			s.written(a)
			s.folder(name, a)
		}
		s.into(operands, args)
	case "dd":
		for _, a := range args {
			if v, ok := strings.CutPrefix(a, "of="); ok {
				s.written(v)
			}
		}
	case "sed", "gsed", "perl":
		if hasShort(args, 'i') || hasLong(args, "--in-place") {
			for _, a := range operands {
				s.written(a)
			}
			return
		}
		for _, a := range operands { // sed's own w command, perl's files
			if f := s.l.namedIn(a); f != "" && s.touches(a) == "" {
				s.add(s.l.unclear(fmt.Sprintf("%s is named in a script of %s", f, name)))
			} else if name == "perl" {
				s.unclear(name, a)
			}
		}
	case "awk", "gawk", "mawk":
		inplace := slices.Contains(args, "inplace")
		for i, a := range operands {
			switch {
			case inplace:
				s.written(a)
			case i == 0 && s.l.namedIn(a) != "":
				s.add(s.l.unclear(s.l.namedIn(a) + " is named in a script of awk"))
			}
		}
	case "yq":
		if hasShort(args, 'i') || hasLong(args, "--inplace") || hasLong(args, "--in-place") {
			for _, a := range operands {
				s.written(a)
			}
		}
	case "sort":
		for i, a := range args {
			if (a == "-o" || a == "--output") && i+1 < len(args) {
				s.written(args[i+1])
			} else if v, ok := strings.CutPrefix(a, "-o"); ok {
				s.written(v)
			} else if v, ok := strings.CutPrefix(a, "--output="); ok {
				s.written(v)
			}
		}
	case "find":
		s.find(args)
	case "git":
		s.git(operands)
	case "curl", "wget":
		for i, a := range args {
			if slices.Contains([]string{"-o", "-O", "--output", "--output-document"}, a) && i+1 < len(args) {
				s.written(args[i+1])
			} else if v, ok := strings.CutPrefix(a, "-o"); ok {
				s.written(v)
			}
			s.written(strings.TrimPrefix(strings.TrimPrefix(a, "--output="), "--output-document="))
		}
	default:
		if readers[name] {
			return
		}
		for _, a := range args {
			_, v, _ := strings.Cut(a, "=")
			s.unclear(name, a)
			s.unclear(name, v)
		}
	}
}

// into judges copies into a folder: the name of a source becomes the name in it.
func (s *shellWalk) into(operands, args []string) {
	if len(operands) == 0 {
		return
	}
	dir, sources := operands[len(operands)-1], operands[:len(operands)-1]
	for i, a := range args {
		if (a == "-t" || a == "--target-directory") && i+1 < len(args) {
			dir, sources = args[i+1], operands
		} else if v, ok := strings.CutPrefix(a, "--target-directory="); ok {
			dir, sources = v, operands
		}
	}
	for _, src := range sources {
		if base := path.Base(src); base != "" && base != "." && base != ".." && base != "/" {
			s.written(strings.TrimSuffix(dir, "/") + "/" + base)
		}
	}
}

// folder judges what removes or moves a folder.
func (s *shellWalk) folder(cmd, word string) {
	if !certain(word) || s.dir == "" || cmd == "tee" || cmd == "install" {
		return
	}
	if f := s.l.holdsSealed(s.dir, word); f != "" {
		s.add(s.l.unclear(fmt.Sprintf("%s lies in what %s is given", filepath.Base(f), cmd)))
	}
}

func (s *shellWalk) find(args []string) {
	named := s.l.namedIn(strings.Join(args, " "))
	for i, a := range args {
		switch a {
		case "-delete":
			if named != "" {
				s.add(s.l.unclear(named + " may be deleted by find"))
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(args) && args[end] != ";" && args[end] != "+" {
				end++
			}
			command := slices.Clone(args[i+1 : end])
			for k, w := range command {
				if strings.Contains(w, "{}") && named != "" {
					command[k] = strings.ReplaceAll(w, "{}", named)
				}
			}
			if len(command) > 0 {
				s.run(command)
			}
		}
	}
}

func (s *shellWalk) git(operands []string) {
	if len(operands) == 0 {
		return
	}
	switch operands[0] {
	case "checkout", "restore", "apply", "am", "mv", "rm", "reset", "stash", "clean":
		for _, a := range operands[1:] {
			s.unclear("git "+operands[0], a)
		}
	}
}

// operandsOf returns the words that are no options.
func operandsOf(args []string) []string {
	var out []string
	for i, a := range args {
		if a == "--" {
			return append(out, args[i+1:]...)
		}
		if !strings.HasPrefix(a, "-") || a == "-" {
			out = append(out, a)
		}
	}
	return out
}

func hasShort(args []string, c byte) bool {
	for _, a := range args {
		if len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.IndexByte(a, c) > 0 {
			return true
		}
	}
	return false
}

func hasLong(args []string, name string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == name || strings.HasPrefix(a, name+"=") })
}
