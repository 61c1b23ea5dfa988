package features

import "strings"

// programWords lists programs by what they do to the world outside the agent.
// A program that is not listed is judged by the verbs in its name, and counts as
// verbExec without any.
var programWords = map[verbClass]string{
	verbRead: `ls cat head tail less more grep egrep fgrep rg ag ack find fd tree wc sort uniq diff cmp stat file du df ps top
		env printenv pwd whoami id uname date echo printf cut awk sed jq yq which whereis man history curl wget ping dig nslookup
		host test true false cd pushd popd export set unset sleep basename dirname realpath xxd od strings nl column tr seq
		status log show branch blame ls-files ls-remote describe`,
	verbSend:   `mail mailx sendmail mutt scp sftp rsync ftp nc ncat netcat telnet push slack`,
	verbWrite:  `cp mv mkdir touch tee ln tar zip unzip gzip gunzip patch dd crontab install add commit merge checkout restore apply`,
	verbDelete: `rm rmdir unlink shred wipe truncate kill killall pkill mkfs clean prune`,
	verbAuth: `sudo su ssh pass passwd chmod chown chgrp vault gpg op useradd usermod userdel login kinit ssh-keygen ssh-add
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

// wrappers are programs that run the one that follows.
var wrappers = wordSet(`time nohup env xargs exec command builtin then do else nice timeout stdbuf watch if while until !`)

// umbrellas are programs whose next word says what they do.
var umbrellas = wordSet(`git gh glab docker podman kubectl helm aws gcloud az s3 pr issue repo container image volume stash remote`)

// commandKeys are argument names under which a command stands.
var commandKeys = wordSet(`command cmd commands script commandline command_line input task args shell exec`)

const (
	maxCommand  = 8 << 10 // bytes of a command that are looked at
	maxPrograms = 64      // programs of a command
)

// commandVerbs returns what the programs in a shell command do. It finds words
// where programs stand, it does not understand the language. Who wants to can hide
// a program from it: behind the bounds above, or in what it takes for a
// here-document.
func commandVerbs(s string) verbSet {
	s = strings.ToLower(s[:min(len(s), maxCommand)])
	var set verbSet
	until := "" // end of the here-document that is being skipped
	n := 0
	for line := range strings.SplitSeq(s, "\n") {
		if until != "" {
			if strings.TrimSpace(line) == until {
				until = ""
			}
			continue
		}
		if at := strings.Index(line, "<<"); at >= 0 && !strings.HasPrefix(line[at:], "<<<") {
			word := strings.TrimLeft(line[at+2:], "- '\"\\")
			if end := strings.IndexAny(word, " '\"\t;|&>)"); end >= 0 {
				word = word[:end]
			}
			until = word
		}
		for line != "" && n < maxPrograms {
			end := strings.IndexAny(line, ";|&(`")
			segment := line
			if end < 0 {
				line = ""
			} else {
				segment, line = line[:end], line[end+1:]
			}
			if strings.TrimSpace(segment) != "" {
				n++
				set.addProgram(segment)
			}
		}
	}
	return set
}

// addProgram adds what one simple command does.
func (s *verbSet) addProgram(segment string) {
	class, named := verbNone, false
	var program string
	for w := range strings.FieldsSeq(segment) {
		switch {
		case named && umbrellas[program]: // git push
			if w[0] == '-' {
				continue
			}
		case named:
			s.addOption(program, w)
			continue
		case strings.ContainsRune(w, '=') && w[0] != '-', wrappers[w], w[0] == '-', w[0] == '{', w[0] == ')':
			continue
		case w == "sudo":
			s.add(verbAuth)
			continue
		}
		named = true
		program = strings.Trim(w[strings.LastIndexByte(w, '/')+1:], `"'{})`)
		class = classOfProgram(program)
		if class == verbNone && !umbrellas[program] {
			class = verbExec
		}
		if strings.HasPrefix(w, "./") {
			class = verbExec
		}
	}
	s.add(class)
}

// addOption adds what a word behind a program changes.
func (s *verbSet) addOption(program, w string) {
	switch {
	case w[0] == '>' && !strings.HasPrefix(w, ">/dev/null"):
		s.add(verbWrite)
	case program == "sed" && strings.HasPrefix(w, "-i"), program == "find" && w == "-exec":
		s.add(verbWrite)
	case program == "find" && w == "-delete":
		s.add(verbDelete)
	case program == "curl" && (w == "-d" || w == "-t" || w == "-f" || strings.HasPrefix(w, "--data") || w == "--upload-file" || w == "--form" ||
		w == "post" || w == "put" || w == "-xpost" || w == "-xput"):
		s.add(verbSend)
	case program == "wget" && strings.HasPrefix(w, "--post"):
		s.add(verbSend)
	}
}

func classOfProgram(name string) verbClass {
	if c, ok := programs[name]; ok {
		return c
	}
	best := verbNone
	for w := range words(name) {
		if c := verbOf[wordToken([]byte(w))]; c > best {
			best = c
		}
	}
	return best
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
