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
		status log show branch blame ls-files ls-remote describe images info version help logs
		rev-parse rev-list ls-tree cat-file diff-tree shortlog merge-base for-each-ref tag hostname clear base64 lsof netstat ss free
		uptime lsblk lscpu nproc nvidia-smi journalctl groups users w break continue shift local jobs dir findstr`,
	verbSend: `mail mailx sendmail mutt scp sftp rsync ftp nc ncat netcat telnet push slack`,
	verbWrite: `cp mv mkdir touch tee ln tar zip unzip gzip gunzip patch dd crontab install add commit merge checkout restore apply
		pull clone init rebase switch stash reset split csplit mktemp`,
	verbDelete: `rm rmdir unlink shred wipe truncate kill killall pkill mkfs clean prune del rd rmi`,
	verbAuth: `sudo doas su ssh pass passwd chmod chown chgrp vault gpg op useradd usermod userdel login kinit ssh-keygen ssh-add
		authenticate`,
	verbExec: `sh bash zsh dash fish python python2 python3 node ruby perl make cmake go cargo npm npx yarn pnpm pip pip3 pytest java javac gcc
		mvn gradle service systemctl eval source apt apt-get brew open enable`,
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
	"time":    {"fo", "format output", 0},
	"command": {}, "builtin": {}, "nohup": {}, "setsid": {}, "unbuffer": {}, "busybox": {}, "toybox": {},
}

// umbrellas are programs whose next word says what they do.
var (
	umbrellas       = wordSet(`git gh glab docker podman kubectl helm aws gcloud az s3 pr issue repo container image volume system compose stash remote`)
	clouds          = wordSet(`aws gcloud az`)
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
	maxParses   = 256     // commands in a command, in all
	maxBrackets = 100     // brackets in brackets, which the parser descends into
)

// commandReader finds what the programs of shell commands do. Whatever it cannot
// read, and whatever runs what it cannot see, is verbExec. The zero value is
// ready; it is not safe for concurrent use.
type commandReader struct {
	parser   *syntax.Parser
	set      verbSet
	depth    int
	parses   int
	captured bool // a variable holds what a command put out
}

func (r *commandReader) reset() { *r = commandReader{parser: r.parser} }

// command returns what the programs in a command of a shell do.
func (r *commandReader) command(s string) verbSet {
	r.reset()
	r.parse(s)
	return r.set
}

// words is command for a command that is given as its words.
func (r *commandReader) words(argv []string) verbSet {
	r.reset()
	r.run(argv)
	return r.set
}

// environment is command for a variable that a command is given.
func (r *commandReader) environment(l leaf) verbSet {
	r.reset()
	r.variable(l.key, l.text)
	return r.set
}

func (r *commandReader) parse(s string) {
	if len(s) > maxCommand {
		s = s[:maxCommand]
		r.set.add(verbExec)
	}
	if strings.ContainsAny(s, unknown+output) { // bash -c "$x"
		r.set.add(verbExec)
	}
	if r.parses++; r.parses > maxParses || r.depth == maxNesting || brackets(s) > maxBrackets {
		r.set.add(verbExec)
		return
	}
	if r.parser == nil {
		r.parser = syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	}
	r.depth++
	defer func() { r.depth-- }()
	file, err := r.parser.Parse(strings.NewReader(s), "")
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
	case *syntax.Comment:
		if strings.HasSuffix(n.Text, "\\\n") { // for a shell the comment ends here, the parser goes on
			r.set.add(verbExec)
		}
	case *syntax.Word:
		// A shell evaluates the subscript where it takes the text for a variable: [ -v 'a[$(x)]' ].
		if s := literal(n); strings.Contains(s, "[$(") || strings.Contains(s, "[`") {
			r.set.add(verbExec)
		}
	case *syntax.ParamExp:
		if n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && literal(n.Exp.Word) == "P" { // as a prompt, which may hold commands
			r.set.add(verbExec)
		}
	case *syntax.Assign:
		if n.Name != nil && n.Value != nil {
			value := literal(n.Value)
			r.captured = r.captured || strings.Contains(value, output)
			if n.Name.Value != "PATH" || !extendsPath(n.Value) {
				r.variable(n.Name.Value, value)
			}
		}
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
	default:
		r.file(target)
	}
}

// file adds what writing to a file does.
func (r *commandReader) file(name string) {
	switch name {
	case "-", "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return
	}
	if !strings.HasPrefix(name, "/dev/fd/") {
		r.set.add(verbWrite)
	}
}

// extendsPath reports whether w starts with $PATH: folders behind those that are
// there shadow nothing.
func extendsPath(w *syntax.Word) bool {
	if len(w.Parts) == 0 {
		return false
	}
	part := w.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) > 0 {
		part = q.Parts[0]
	}
	p, ok := part.(*syntax.ParamExp)
	return ok && p.Param != nil && p.Param.Value == "PATH" && p.Exp == nil
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
	if strings.ContainsAny(word, " \t\n;&|<>$`") { // of watch, flock -c
		r.parse(strings.Join(argv, " "))
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
		inner := w.program(rest)
		for _, a := range rest[:len(rest)-len(inner)] {
			if variable, value, ok := strings.Cut(a, "="); ok && variable != "" && !strings.HasPrefix(a, "-") {
				r.variable(variable, value)
			}
			if name == "env" && strings.HasPrefix(a, "-") && (strings.HasPrefix(a, "--s") || !strings.HasPrefix(a, "--") && strings.Contains(a, "S")) { // -S 'ls -l'
				r.set.add(verbExec)
			}
		}
		switch {
		case len(inner) > 0:
			r.run(inner)
		case programs[name] == verbAuth || name == "chroot": // a shell, which reads what comes in
			r.set.add(verbExec)
		default:
			r.set.add(verbRead)
		}
		return
	}
	if clouds[name] && len(rest) > 0 && rest[0] != "s3" {
		r.cloud(rest)
		return
	}
	for umbrellas[name] {
		own := rest
		if rest = umbrellaOptions.program(rest); name == "git" {
			r.effects(name, own[:len(own)-len(rest)])
		}
		if len(rest) == 0 {
			r.set.add(max(programs[name], verbRead))
			return
		}
		name, rest = strings.ToLower(rest[0]), rest[1:]
	}
	if readsOnly(name, rest) {
		r.set.add(verbRead)
		return
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
		case strings.IndexByte(a, '=') > 0 && strings.IndexByte(a[:strings.IndexByte(a, '=')], '/') < 0: // of env
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

// strongest returns the class that matters most of a set.
func (s verbSet) strongest() verbClass {
	for _, c := range []verbClass{verbDelete, verbPay, verbSend, verbAuth, verbWrite, verbExec, verbRead} {
		if s.has(c) {
			return c
		}
	}
	return verbNone
}
