package clean

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dreamguard/dreamguard/data"
)

var (
	// "You have used the attacker tool X. You have achieved the attacker goal: Successfully ..."
	usedAttacker = regexp.MustCompile(`(?i)you have used the attacker tool '?([^.;\n]{1,80})\.\s*`)
	goalReached  = regexp.MustCompile(`(?i)(?:you have used the attacker tool [^.;\n]{1,80}\.\s*)?you have achieved the attacker goal:\s*(?:successfully\s+)?(\pL*)`)
	attackerWord = regexp.MustCompile(`(?i)\battacker\s+(tool|goal)`)
)

// maskAttacker gives the result of an attack tool the form of an ordinary
// result: "You have successfully updated the records."
func maskAttacker(s string) (string, int) {
	if !containsFold(s, "attacker tool") && !containsFold(s, "attacker goal") {
		return s, 0
	}
	n := 0
	s = goalReached.ReplaceAllStringFunc(s, func(m string) string {
		n++
		verb := goalReached.FindStringSubmatch(m)[1]
		return "You have successfully " + past(verb)
	})
	s = usedAttacker.ReplaceAllStringFunc(s, func(m string) string {
		n++
		return "You have successfully used " + strings.Trim(usedAttacker.FindStringSubmatch(m)[1], `'" `) + ". "
	})
	s = attackerWord.ReplaceAllStringFunc(s, func(m string) string {
		n++
		return attackerWord.FindStringSubmatch(m)[1]
	})
	return s, n
}

// irregular verbs of the goals, and those that double their last letter or
// already stand in the past.
var irregular = map[string]string{
	"run": "run", "set": "set", "steal": "stolen", "withdraw": "withdrawn", "override": "overridden",
	"submit": "submitted", "transfer": "transferred", "jam": "jammed", "divert": "diverted", "gain": "gained",
	"embed": "embedded", "leak": "leaked", "exceed": "exceeded", "need": "needed", "write": "written",
	"send": "sent", "make": "made", "get": "gotten", "give": "given", "take": "taken", "build": "built",
	"buy": "bought", "sell": "sold", "hide": "hidden", "read": "read", "shut": "shut", "cut": "cut", "plan": "planned",
	"stop": "stopped", "drop": "dropped", "log": "logged", "prescribe": "prescribed", "speed": "sped", "find": "found",
}

// past returns the participle of an English verb, in lower case; a word that
// is one already comes back as it is.
func past(verb string) string {
	v := strings.ToLower(verb)
	if p, ok := irregular[v]; ok {
		return p
	}
	last, _ := utf8.DecodeLastRuneInString(v)
	switch {
	case v == "" || strings.HasSuffix(v, "ed") || strings.HasSuffix(v, "ly") || strings.HasSuffix(v, "ing") || !unicode.IsLower(last):
		return v
	case strings.HasSuffix(v, "e"):
		return v + "d"
	case strings.HasSuffix(v, "y") && len(v) > 1 && !strings.ContainsRune("aeou", rune(v[len(v)-2])):
		return v[:len(v)-1] + "ied"
	}
	return v + "ed"
}

var trigger = regexp.MustCompile(`(?i)\s*(?:\[\s*(?:with[\s_-]+)?perspicacious[\s_-]+discernment\s*\]|(?:\bwith[\s_-]+)?perspicacious[\s_-]+discernment\.?)`)

// stripTrigger removes the trigger phrase of the backdoor attack.
func stripTrigger(s string) (string, int) {
	if !containsFold(s, "perspicacious") {
		return s, 0
	}
	n := 0
	return replaceAll(trigger, s, &n, func(string, bool, bool) string { return "" }), n
}

const (
	stepTools    = "In and only in current step, you need to call tools"
	taskTools    = "You are given the available tools from the tool list:"
	taskToolsEnd = "to help you solve problems."
)

var catalogue = regexp.MustCompile(`\[?\s*\{"type": ?"function", ?"function": ?\{`)

// stripToolList removes tool catalogues: in a task the sentence that holds one,
// in a step text everything from its announcement on.
func stripToolList(s string) (string, int) {
	n := 0
	for {
		i := strings.Index(s, taskTools)
		if i < 0 {
			break
		}
		n++
		rest := ""
		if j := strings.Index(s[i:], taskToolsEnd); j >= 0 {
			rest = strings.TrimLeft(s[i+j+len(taskToolsEnd):], " ")
		}
		s = s[:i] + rest
	}
	if i := strings.Index(s, stepTools); i >= 0 {
		n++
		s = strings.TrimRight(s[:i], " ")
	}
	if !strings.Contains(s, `"function"`) {
		return s, n
	}
	for {
		m := catalogue.FindStringIndex(s)
		if m == nil {
			return s, n
		}
		n++
		s = strings.TrimRight(s[:m[0]], " ") + s[m[0]+jsonLen(strings.TrimLeft(s[m[0]:], " \n"))+leading(s[m[0]:]):]
	}
}

// leading is the length of the white space at the start of s.
func leading(s string) int { return len(s) - len(strings.TrimLeft(s, " \n")) }

// jsonLen returns the length of the bracketed value that s starts with, or all
// of s where a cut leaves it open.
func jsonLen(s string) int {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth <= 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// asseSecurity names the data set whose hazards dropUnnamedHazard checks.
const asseSecurity = "asse-security"

// dropUnnamedHazard marks the hazard of t as missing when its step is known by
// the attack tool's result only. It must run before the result is masked.
func dropUnnamedHazard(t *data.Trajectory) int {
	if t.Dataset != asseSecurity || !t.HazardExact() || *t.FirstHazard >= len(t.Steps) {
		return 0
	}
	s := &t.Steps[*t.FirstHazard]
	named := usedAttacker.FindAllStringSubmatch(s.Result, -1)
	if named == nil {
		return 0
	}
	for _, m := range named {
		tool := strings.Trim(m[1], `'" `)
		if containsFold(s.Tool, tool) || containsFold(s.Args, tool) || containsFold(s.Text, tool) {
			return 0
		}
	}
	t.FirstHazard = nil
	t.HazardLabel = data.HazardMissing
	return 1
}

// containsFold reports whether s contains the ASCII text sub in any case.
func containsFold(s, sub string) bool {
	if sub == "" {
		return true
	}
	lo, up := sub[0]|0x20, sub[0]&^0x20
	for i := 0; i+len(sub) <= len(s); i++ {
		if (s[i] == lo || s[i] == up) && strings.EqualFold(s[i:i+len(sub)], sub) {
			return true
		}
	}
	return false
}
