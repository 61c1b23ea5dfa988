package features

import (
	"regexp"
	"strings"
)

// options adds what the words behind a program change.
func (r *commandReader) options(name string, args []string) {
	r.effects(name, args)
	switch {
	case shells[name] || name == "su":
		r.code(args, name == "su")
	case name == "eval":
		r.parse(strings.Join(args, " "))
	case name == "ssh":
		for _, a := range args {
			if strings.Contains(strings.ToLower(a), "command") || strings.HasPrefix(a, "-F") { // -o ProxyCommand=x
				r.set.add(verbExec)
			}
		}
		inner := wrapper{options: "BbcDEeFIiJLlmOopQRSWw", words: 1}.program(args)
		if len(inner) == 0 {
			r.set.add(verbExec) // a shell, which reads what comes in
		} else {
			r.parse(strings.Join(inner, " "))
		}
	case name == "find":
		r.find(args)
	case name == "sed":
		for i, a := range args {
			script := strings.TrimPrefix(strings.TrimPrefix(a, "--expression="), "-e")
			if script == a && (a == "" || a[0] == '-' || i > 0 && !strings.HasPrefix(args[i-1], "-")) {
				continue // neither the first word that is no option nor one behind -e
			}
			if sedEffects.MatchString(script) || strings.ContainsAny(script, unknown+output) {
				r.set.add(verbExec)
			}
		}
	case name == "awk" || name == "gawk":
		for _, a := range args {
			if awkEffects.MatchString(a) || strings.ContainsAny(a, ">|") && (strings.Contains(a, `/"`) || strings.Contains(a, `\"`)) {
				r.set.add(verbExec)
			}
		}
	case name == "ping" || name == "dig" || name == "nslookup" || name == "host":
		for _, a := range args {
			if r.carries(a) {
				r.set.add(verbSend)
			}
		}
	case name == "curl":
		r.curl(args)
	case name == "wget":
		for i, a := range args {
			if strings.HasPrefix(a, "--post") || strings.HasPrefix(a, "--body") || method(args, i, "--method") || r.carries(a) {
				r.set.add(verbSend)
			}
		}
		if !wgetPrints.MatchString(strings.Join(args, " ")) {
			r.set.add(verbWrite)
		}
	}
}

// carries reports whether what a program that asks another machine is given may
// hold what a command put out.
func (r *commandReader) carries(arg string) bool {
	query := strings.IndexByte(arg, '?')
	return strings.Contains(arg, output) || strings.Contains(arg, unknown) && r.captured || query >= 0 && strings.Contains(arg[query:], unknown)
}

// What keeps wget from writing a file; what makes awk write or run, and sed: the
// commands w and e, the flags of s.
var (
	wgetPrints = regexp.MustCompile(`(^| )(-\w*O ?(-|/dev/null)|--output-document[= ](-|/dev/null)|--spider|--version|--help)( |$)`)
	awkEffects = regexp.MustCompile(`system|getline|\|&|(^|[;{}(=!,\s])@[A-Za-z_]|print(f)?\b([^;}\n"|>]|"(\\.|[^"\\\n])*"|\|\|)*[>|]`)
	sedEffects = regexp.MustCompile(`(^|[;{}\n])[0-9,$!~+\s]*[weW]|[^\w\s\\][gpiImM0-9]*[eEwW]([\s;}]|$)`)
)

// effects are what makes a program that is listed under verbRead do more, as
// patterns for its words, each on a line of its own.
var effects = func() map[string]map[verbClass]*regexp.Regexp {
	m := map[string]map[verbClass]*regexp.Regexp{}
	for _, e := range []struct {
		names   string
		class   verbClass
		pattern string
	}{
		{"sort", verbWrite, `^-[^-kStT\n]*o|^--o`}, {"sort", verbExec, `^--comp`},
		{"uniq xxd", verbWrite, `^[^-\d].*\n[^-\d]|^-r`},
		{"sed yq", verbWrite, `^-[^-efl\n]*i|^--i`}, {"sed", verbExec, `^-[^-e\n]*[fl]|^--f`},
		{"awk gawk", verbExec, `^-[filE]|^--(f|in|l|ex)`},
		{"rg ag ack", verbExec, `^--(pre|hostname-bin|pager|output)(=|$)`}, {"fd", verbExec, `^-[^-\n]*[xX]|^--exec`},
		{"tree less", verbWrite, `^-[^-\n]*[oO]|^--log`}, {"man", verbExec, `^-[^-\n]*[PH]|^--(p|html)`},
		{"date", verbWrite, `^-[^-dfrI\n]*s|^--s`}, {"hostname", verbWrite, `^[^-]|^-[Fb]|^--file`}, {"file", verbWrite, `^-[^-\n]*C|^--com`},
		{"history", verbWrite, `^-[awrn]`}, {"history", verbDelete, `^-[cd]`}, {"journalctl", verbDelete, `^--vac`}, {"ss", verbExec, `^-\w*K|^--kill`},
		{"log diff show shortlog diff-tree rev-list", verbWrite, `^--out`}, {"grep", verbExec, `^-O|^--open`},
		{"branch", verbDelete, `^-\w*[dD]|^--del`}, {"branch", verbWrite, `\A[^-\n]|^-\w*[mMcCfu]|^--(move|copy|force|set|unset|edit)`},
		{"tag", verbDelete, `^-\w*d|^--del`}, {"tag", verbWrite, `\A[^-\n]|^-[asumFf]|^--(sign|annotate|message|file|force)`},
		{"push", verbDelete, `^-\w*d|^--(del|prune|mirror)`}, {"reset", verbDelete, `^--hard`},
		{"tar", verbExec, `^-\w*[IF]|^--(to-c|use-c|checkpoint-a|rsh|i)`},
		{"git", verbExec, `^--(exec-path=|config-env)|(?i:^-c\n?(core\.(editor|ssh|fsm|hook|gitp|ask)|core\.pager=([^c\n]|c[^a\n]|ca[^t\n]|cat[^\n])|(pager|alias|diff|difftool|merge|mergetool|filter|credential|gpg|protocol|include|includeif|sequence|web|man|browser|remote|url|uploadpack|submodule|interactive|ssh|http|trailer)\.))`},
	} {
		for name := range strings.FieldsSeq(e.names) {
			if m[name] == nil {
				m[name] = map[verbClass]*regexp.Regexp{}
			}
			m[name][e.class] = regexp.MustCompile("(?m)" + e.pattern)
		}
	}
	return m
}()

func (r *commandReader) effects(name string, args []string) {
	if patterns := effects[name]; patterns != nil {
		lines := strings.Join(args, "\n")
		for class, p := range patterns {
			if p.MatchString(lines) {
				r.set.add(class)
			}
		}
	}
}

// code adds what a shell does: run the text after -c, a file, or what it reads.
// su may name a user first.
func (r *commandReader) code(args []string, user bool) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case strings.HasPrefix(a, "--rcfile"), strings.HasPrefix(a, "--init-file"): // a file of code
			r.set.add(verbExec)
			i++
		case strings.HasPrefix(a, "--"):
		case len(a) > 1 && a[0] == '-' && strings.IndexByte(a, 'c') > 0 && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			r.parse(args[i+1])
			return
		case len(a) > 1 && (a[0] == '-' || a[0] == '+') && (a[len(a)-1] == 'o' || a[len(a)-1] == 'O'):
			i++
		case a != "" && (a[0] == '-' || a[0] == '+') || user:
		default: // a script, to which the rest goes
			r.set.add(verbExec)
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
			strings.HasPrefix(a, "--upload-file"), method(args, i, "--request"), r.carries(a),
			strings.HasPrefix(a, "--url-query"), strings.HasPrefix(a, "--quote"), strings.HasPrefix(a, "--mail-"), strings.HasPrefix(a, "gopher:"), strings.HasPrefix(a, "telnet:"):
			r.set.add(verbSend)
		case strings.HasPrefix(a, "--config"):
			r.set.add(verbExec)
		case a == "--output" && i+1 < len(args):
			r.file(args[i+1])
		case strings.HasPrefix(a, "--output="):
			r.file(a[len("--output="):])
		case strings.HasPrefix(a, "--remote-name"), strings.HasPrefix(a, "--dump-header"), strings.HasPrefix(a, "--cookie-jar"):
			r.set.add(verbWrite)
		case len(a) > 1 && a[0] == '-' && a[1] != '-':
			at := strings.IndexAny(a, sends+value)
			if o := strings.IndexByte(a, 'O'); o > 0 && (at < 0 || o < at) {
				r.set.add(verbWrite)
			}
			next := ""
			if at > 0 {
				if next = a[at+1:]; next == "" && i+1 < len(args) {
					next = args[i+1]
				}
			}
			switch {
			case at < 0:
			case strings.IndexByte(sends, a[at]) >= 0:
				r.set.add(verbSend)
			case a[at] == 'X' && next != "" && !safeMethods[next], a[at] == 'H' && strings.HasPrefix(next, "@"), a[at] == 'Q':
				r.set.add(verbSend)
			case a[at] == 'K':
				r.set.add(verbExec)
			case a[at] == 'o', a[at] == 'D', a[at] == 'c':
				r.file(next)
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

// readings are the first words with which a program that does more only reads.
var readings = map[string]string{
	"config": "--get --get-all --list -l view get-contexts current-context", "worktree": "list",
	"pip": "list show freeze", "pip3": "list show freeze", "npm": "ls list view", "go": "version env list", "node": "-v", "python": "-V", "python3": "-V",
	"systemctl": "status list-units is-active", "tar": "-tf -tvf -tzf -tzvf tf tvf tzf tzvf", "unzip": "-l", "crontab": "-l",
}

// readsOnly reports whether the words behind a program have it do no more than
// read: no option follows the word that says so.
func readsOnly(name string, args []string) bool {
	for i, a := range args {
		switch {
		case i == 0 && hasWord(readings[name], a):
		case i == 0 && (a == "--version" || a == "--help"):
			return len(args) == 1 && programs[name] != verbNone
		case i == 0 || strings.HasPrefix(a, "-") || strings.Contains(a, unknown):
			return false
		}
	}
	return len(args) > 0
}

// cloud adds what the client of a cloud does: the strongest verb of the words
// behind the service, whose name may look like a verb (compute, logs).
func (r *commandReader) cloud(args []string) {
	args = umbrellaOptions.program(args)
	class := verbNone
	for i, a := range args[:min(len(args), 4)] {
		if i > 0 && strings.HasPrefix(a, "-") {
			break
		}
		if i > 0 || len(args) == 1 {
			for w := range words(a) {
				class = max(class, verbOf[wordToken([]byte(w))])
			}
		}
	}
	if class == verbNone {
		class = verbExec
	}
	r.set.add(class)
}

// Variables whose value programs run, and those that say where code lies.
var (
	commandVariables = wordSet(`PAGER MANPAGER GIT_PAGER EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF
		GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS GIT_PROXY_COMMAND PROMPT_COMMAND LESSOPEN LESSCLOSE BROWSER RSYNC_RSH`)
	codeVariables = wordSet(`PATH LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES BASH_ENV ENV PS4 GIT_EXEC_PATH GIT_CONFIG_COUNT
		GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_PARAMETERS NODE_OPTIONS PYTHONSTARTUP PERL5OPT RUBYOPT SHELL`)
)

// variable adds what giving a variable that value does.
func (r *commandReader) variable(name, value string) {
	switch {
	case codeVariables[name] && value != "/dev/null":
		r.set.add(verbExec)
	case commandVariables[name]:
		r.parse(value)
	}
}
