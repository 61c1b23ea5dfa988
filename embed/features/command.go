package features

import (
	"slices"
	"strings"
)

// commandVerbs returns what the programs in the command of the call do, nothing
// if it has none. It reads the arguments anew: a quote that Normalize makes of
// another character would hide what a shell does not see as quoted.
func (t *Tracker) commandVerbs(args string) (set verbSet) {
	all := leaves(nil, clip(args, maxArgs), verbatim)
	r := &t.scratch.commands
	if len(all) == maxLeaves || len(args) > maxArgs { // there is more
		set.add(verbExec)
	}
	var command, behind []string // those that stand next to each other
	for i := 0; i < len(all); {
		first := i
		for i++; i < len(all) && all[i].more; i++ {
		}
		list := all[first:i]
		key := strings.ToLower(list[0].key)
		switch {
		case codeKeys[key]:
			set.add(verbExec)
		case commandsKeys[key]:
			for _, l := range list {
				set |= r.command(l.text)
			}
		case wordsKeys[key]:
			behind = appendWords(nil, list)
			if command != nil {
				set |= r.words(slices.Concat(command, behind))
			}
		case !commandKeys[key] && (len(all) > 1 || key != "" && !t.namesShell()):
			set |= r.environment(list[0])
		case len(list) > 1:
			set |= r.words(appendWords(nil, list))
		default:
			command = appendWords(nil, list)
			set |= r.command(list[0].text)
			if behind != nil {
				set |= r.words(slices.Concat(command, behind))
			}
		}
	}
	return set
}

// namesShell reports whether the tool's name says that it runs commands of a
// shell.
func (t *Tracker) namesShell() bool {
	return slices.ContainsFunc(t.scratch.tool.list, func(i setItem) bool { return shellWords[i.t] })
}

// appendWords appends the words of a command: the items of a list, or what
// blanks separate in a single text.
func appendWords(dst []string, list []leaf) []string {
	if len(list) == 1 {
		return append(dst, strings.Fields(list[0].text)...)
	}
	for _, l := range list {
		dst = append(dst, l.text)
	}
	return dst
}
