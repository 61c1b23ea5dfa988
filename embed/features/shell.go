package features

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// programWords lists programs, and what may follow an umbrella, by what they do
// to the world outside the agent. A program that is not listed is judged by the
// verbs in its name, and counts as verbExec without any.
var programWords = map[verbClass]string{
	verbRead: `ls cat tac head tail less more grep egrep fgrep rg ag ack find fd tree wc sort uniq diff cmp comm stat file du df ps top
		env printenv pwd whoami id uname date echo printf cut awk gawk sed jq yq which whereis man history curl wget ping dig nslookup
		host test true false cd pushd popd export set unset sleep basename dirname realpath readlink xxd od hexdump strings nl column
		tr seq rev fold paste join md5sum sha1sum sha256sum sha512sum exit return wait read type [ : time nohup
		status log show branch blame ls-files ls-remote describe images info version help logs`,
	verbSend: `mail mailx sendmail mutt scp sftp rsync ftp nc ncat netcat telnet push slack`,
	verbWrite: `cp mv mkdir touch tee ln tar zip unzip gzip gunzip patch dd crontab install add commit merge checkout restore apply
		pull clone init tag rebase switch stash`,
	verbDelete: `rm rmdir unlink shred wipe truncate kill killall pkill mkfs clean prune del rd`,
	verbAuth: `sudo doas su ssh pass passwd chmod chown chgrp vault gpg op useradd usermod userdel login kinit ssh-keygen ssh-add
		authenticate`,
	verbExec: `sh bash zsh dash fish python python2 python3 node ruby perl make cmake go cargo npm npx yarn pnpm pip pip3 pytest java javac gcc
		mvn gradle service systemctl eval source apt apt-get brew`,
}

var programs = func() map[string]verbClass {
	m := map[string]verbClass{}
	for c, words := range programWords {
		for w := range strings.FieldsSeq(words) {
			m[w] = c
		}
	}
	return m
}()

// wrapper is a program that runs the one that follows.
type wrapper struct {
	options string // letters of the options that take a value
	long    string // the same, of options with two dashes
	words   int    // words of its own before the program
}

var wrappers = map[string]wrapper{
	"sudo":    {"ugpChrtTUDR", "user group host prompt chdir chroot role type command-timeout close-from", 0},
	"doas":    {"uC", "", 0},
	"env":     {"uC", "unset chdir", 0},
	"nice":    {"n", "adjustment", 0},
	"ionice":  {"cnpPu", "class classdata", 0},
	"timeout": {"sk", "signal kill-after", 1},
	"stdbuf":  {"ioe", "input output error", 0},
	"watch":   {"n", "interval", 0},
	"xargs":   {"nILPsdaE", "max-args replace max-lines max-procs max-chars delimiter arg-file eof", 0},
	"flock":   {"wE", "timeout wait conflict-exit-code", 1},
	"chroot":  {"", "userspec groups", 1},
	"strace":  {"eopPsuESabIX", "output trace", 0},
	"exec":    {"a", "", 0},
	"command": {}, "builtin": {}, "nohup": {}, "setsid": {}, "unbuffer": {}, "time": {}, "busybox": {}, "toybox": {},
}

// umbrellas are programs whose next word says what they do.
var (
	umbrellas       = wordSet(`git gh glab docker podman kubectl helm aws gcloud az s3 pr issue repo container image volume stash remote`)
	umbrellaOptions = wrapper{"CcHnR", "git-dir work-tree namespace host context config kubeconfig repo region profile output endpoint-url project account", 0}
)

var (
	shells = wordSet(`sh bash zsh dash ksh ash fish rbash`)
	// systemFolders hold the programs that their names promise.
	systemFolders = wordSet(`/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /opt/homebrew/bin`)
)

// Argument names: under which a command stands, several commands, the words that
// follow one, and a program in another language.
var (
	commandKeys  = wordSet(`command cmd commandline command_line cmdline exec`)
	commandsKeys = wordSet(`commands cmds script`)
	wordsKeys    = wordSet(`args arguments argv parameters`)
	codeKeys     = wordSet(`code source program python javascript js sql query snippet expression`)
	shellWords   = stemSet(`shell terminal bash sh zsh command cmd console powershell`)
)

func stemSet(list string) map[token]bool {
	m := map[token]bool{}
	for w := range strings.FieldsSeq(list) {
		m[wordToken([]byte(w))] = true
	}
	return m
}

const (
	maxCommand  = 8 << 10 // bytes of a command that are looked at
	maxNesting  = 4       // commands in commands: bash -c, eval, ssh
	maxBrackets = 100     // brackets in brackets, which the parser descends into
)

// commandReader finds what the programs of shell commands do. Whatever it cannot
// read, and whatever runs what it cannot see, is verbExec. The zero value is
// ready; it is not safe for concurrent use.
type commandReader struct {
	parser *syntax.Parser
	set    verbSet
	depth  int
}

// command returns what the programs in a command of a shell do.
func (r *commandReader) command(s string) verbSet {
	r.set, r.depth = 0, 0
	r.parse(s)
	return r.set
}

// words is command for a command that is given as its words.
func (r *commandReader) words(argv []string) verbSet {
	r.set, r.depth = 0, 0
	r.run(argv)
	return r.set
}

func (r *commandReader) parse(s string) {
	if len(s) > maxCommand {
		s = s[:maxCommand]
		r.set.add(verbExec)
	}
	if r.depth == maxNesting || brackets(s) > maxBrackets {
		r.set.add(verbExec)
		return
	}
	// Each level has its own, for the outer one is in the middle of its text.
	parser := r.parser
	if parser == nil || r.depth > 0 {
		parser = syntax.NewParser(syntax.Variant(syntax.LangBash))
	}
	if r.depth == 0 {
		r.parser = parser
	}
	r.depth++
	defer func() { r.depth-- }()
	file, err := parser.Parse(strings.NewReader(s), "")
	if err != nil {
		r.set.add(verbExec)
	}
	if file != nil {
		syntax.Walk(file, r.visit)
	}
}

// brackets returns how deep brackets stand in brackets.
func brackets(s string) (deepest int) {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(', '{', '[':
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return deepest
}

func (r *commandReader) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Redirect:
		r.redirect(n)
	case *syntax.CallExpr:
		if len(n.Args) == 0 {
			r.set.add(verbRead) // assignments alone
			break
		}
		argv := make([]string, len(n.Args))
		for i, w := range n.Args {
			argv[i] = literal(w)
		}
		r.run(argv)
	case *syntax.DeclClause, *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		r.set.add(verbRead)
	}
	return true
}

func (r *commandReader) redirect(n *syntax.Redirect) {
	target := literal(n.Word)
	switch n.Op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.DplOut:
	default:
		return
	}
	switch {
	case strings.HasPrefix(target, "/dev/tcp/"), strings.HasPrefix(target, "/dev/udp/"):
		r.set.add(verbSend)
	case n.Op == syntax.RdrIn:
	case n.Op == syntax.DplOut && strings.Trim(target, "0123456789-") == "": // 2>&1
	case target == "/dev/null", target == "/dev/stdout", target == "/dev/stderr", target == "/dev/tty", strings.HasPrefix(target, "/dev/fd/"):
	default:
		r.set.add(verbWrite)
	}
}

// What stands in a literal for what is only known when the command runs.
const (
	unknown = "\x00"
	output  = "\x01" // of another command
)

// literal returns the text of a word without its quotes.
func literal(w *syntax.Word) string {
	if w == nil {
		return unknown
	}
	if len(w.Parts) == 1 {
		if l, ok := w.Parts[0].(*syntax.Lit); ok && strings.IndexByte(l.Value, '\\') < 0 {
			return l.Value
		}
	}
	var b strings.Builder
	literals(&b, w.Parts)
	return b.String()
}

func literals(b *strings.Builder, parts []syntax.WordPart) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			for i := 0; i < len(p.Value); i++ {
				if p.Value[i] == '\\' && i+1 < len(p.Value) {
					if i++; p.Value[i] == '\n' {
						continue
					}
				}
				b.WriteByte(p.Value[i])
			}
		case *syntax.SglQuoted:
			if p.Dollar && strings.IndexByte(p.Value, '\\') >= 0 {
				b.WriteString(unknown)
				continue
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			literals(b, p.Parts)
		case *syntax.CmdSubst, *syntax.ProcSubst:
			b.WriteString(output)
		default:
			b.WriteString(unknown)
		}
	}
}

// run adds what one simple command does.
func (r *commandReader) run(argv []string) {
	if len(argv) == 0 {
		return
	}
	word, rest := argv[0], argv[1:]
	if strings.ContainsAny(word, unknown+output+"*?[{") && word != "[" {
		r.set.add(verbExec)
		r.named(word)
		return
	}
	folder, name := path.Split(strings.ToLower(word))
	if folder != "" && !systemFolders[path.Clean(folder)] {
		r.set.add(verbExec)
	}
	if w, ok := wrappers[name]; ok {
		if programs[name] == verbAuth {
			r.set.add(verbAuth)
		}
		if name == "command" && len(rest) > 0 && (rest[0] == "-v" || rest[0] == "-V") {
			r.set.add(verbRead) // asks where it lies
			return
		}
		if inner := w.program(rest); len(inner) > 0 {
			r.run(inner)
		} else if programs[name] != verbAuth {
			r.set.add(verbRead)
		}
		return
	}
	for umbrellas[name] {
		if rest = umbrellaOptions.program(rest); len(rest) == 0 {
			r.set.add(max(programs[name], verbRead))
			return
		}
		name, rest = strings.ToLower(rest[0]), rest[1:]
	}
	r.named(name)
	r.options(name, rest)
}

// named adds what a program of that name does.
func (r *commandReader) named(name string) {
	class, ok := programs[name]
	if !ok {
		for w := range words(name) {
			class = max(class, verbOf[wordToken([]byte(w))])
		}
	}
	if class == verbNone {
		class = verbExec
	}
	if shells[name] || name == "eval" {
		return // what it runs counts
	}
	r.set.add(class)
}

// program returns args from the program that w runs on.
func (w wrapper) program(args []string) []string {
	own := w.words
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
		case strings.HasPrefix(a, "--"):
			if hasWord(w.long, a[2:]) {
				i++
			}
		case len(a) > 1 && a[0] == '-':
			if at := strings.IndexAny(a[1:], w.options); w.options != "" && at >= 0 && at == len(a)-2 {
				i++
			}
		case strings.IndexByte(a, '=') > 0: // of env
		case own > 0:
			own--
		default:
			return args[i:]
		}
	}
	return nil
}

func hasWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// options adds what the words behind a program change.
func (r *commandReader) options(name string, args []string) {
	switch {
	case shells[name] || name == "su":
		r.code(args)
	case name == "eval":
		r.parse(strings.Join(args, " "))
	case name == "ssh":
		inner := wrapper{options: "BbcDEeFIiJLlmOopQRSWw", words: 1}.program(args)
		if len(inner) == 0 {
			r.set.add(verbExec) // a shell, which reads what comes in
		} else {
			r.parse(strings.Join(inner, " "))
		}
	case name == "find":
		r.find(args)
	case name == "sed":
		for _, a := range args {
			if strings.HasPrefix(a, "-i") || strings.HasPrefix(a, "--in-place") {
				r.set.add(verbWrite)
			}
		}
	case name == "awk" || name == "gawk":
		for _, a := range args {
			if strings.Contains(a, "system") || strings.ContainsAny(a, "|>") && strings.IndexByte(a, '"') >= 0 {
				r.set.add(verbExec)
			}
		}
	case name == "branch":
		for _, a := range args {
			if a == "-d" || a == "-D" || a == "--delete" {
				r.set.add(verbDelete)
			}
		}
	case name == "curl":
		r.curl(args)
	case name == "wget":
		for i, a := range args {
			if strings.HasPrefix(a, "--post") || strings.HasPrefix(a, "--body") || method(args, i, "--method") || strings.Contains(a, output) {
				r.set.add(verbSend)
			}
		}
	}
}

// code adds what a shell does: run the text after -c, a file, or what it reads.
func (r *commandReader) code(args []string) {
	for i, a := range args {
		if len(a) > 1 && a[0] == '-' && a[1] != '-' && a[len(a)-1] == 'c' && i+1 < len(args) {
			r.parse(args[i+1])
			return
		}
	}
	r.set.add(verbExec)
}

func (r *commandReader) find(args []string) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-delete":
			r.set.add(verbDelete)
		case strings.HasPrefix(a, "-fprint"), a == "-fls":
			r.set.add(verbWrite)
		case a == "-exec", a == "-execdir", a == "-ok", a == "-okdir":
			end := i + 1
			for end < len(args) && args[end] != ";" && args[end] != "+" {
				end++
			}
			r.run(args[i+1 : end])
			i = end
		}
	}
}

// curl adds verbSend where curl sends data, uploads a file or uses a method that
// may change something, or where what it asks for holds what another command
// put out.
func (r *commandReader) curl(args []string) {
	const (
		sends = "dFT"
		value = "XHAbcCeEhKmoPQrtuUwxyYzD" // other options with a value
	)
	for i, a := range args {
		switch {
		case strings.HasPrefix(a, "--data"), strings.HasPrefix(a, "--form"), a == "--json", strings.HasPrefix(a, "--json="),
			strings.HasPrefix(a, "--upload-file"), method(args, i, "--request"), strings.Contains(a, output):
			r.set.add(verbSend)
		case len(a) > 1 && a[0] == '-' && a[1] != '-':
			at := strings.IndexAny(a, sends+value)
			switch {
			case at < 0:
			case strings.IndexByte(sends, a[at]) >= 0:
				r.set.add(verbSend)
			case a[at] == 'X':
				if m := a[at+1:]; m != "" && !safeMethods[m] || m == "" && i+1 < len(args) && !safeMethods[args[i+1]] {
					r.set.add(verbSend)
				}
			}
		}
	}
}

// safeMethods of HTTP change nothing (RFC 9110, section 9.2.1).
var safeMethods = wordSet(`GET HEAD OPTIONS TRACE`)

// method reports whether args[i] is the option with a method that is not safe,
// as its value or as the next word.
func method(args []string, i int, option string) bool {
	value, ok := strings.CutPrefix(args[i], option)
	if !ok {
		return false
	}
	if value == "" && i+1 < len(args) {
		return !safeMethods[args[i+1]]
	}
	return !safeMethods[strings.TrimPrefix(value, "=")]
}

// strongest returns the class that matters most of a set.
func (s verbSet) strongest() verbClass {
	for _, c := range []verbClass{verbDelete, verbPay, verbSend, verbAuth, verbWrite, verbExec, verbRead} {
		if s.has(c) {
			return c
		}
	}
	return verbNone
}
