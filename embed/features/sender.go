package features

import (
	"slices"
	"strings"
)

// message is a part of a result, up to the next one.
type message struct {
	start int
	named bool // by someone whom the task names
}

// maxMessages bounds the parts of one result; what follows belongs to the last.
const maxMessages = 256

// maxNames bounds the e-mail addresses of one call whose names are looked up.
const maxNames = 64

// senderKeys are names of fields that say who wrote a message.
var senderKeys = wordSet(`from sender author from_user from_email sender_email sender_name posted_by created_by`)

// genericSenders are words in the names of senders that name nobody.
var genericSenders = wordSet(`the noreply reply donotreply support info team service services admin notification notifications mail email
	news newsletter contact help user account bot system office sales billing security`)

// messages splits a result where records begin (an item of a YAML list, a JSON
// object, the head of a mail) and finds those whose sender the task names: by a
// word of the name, or of the part of the address that stands before the @. It
// believes what the text says of itself, which whoever writes the text can fake.
func (t *Tracker) messages(dst []message, text string) []message {
	dst = append(dst[:0], message{})
	begin := func(at int) {
		if len(dst) < maxMessages {
			dst = append(dst, message{start: at})
		}
	}
	blank := true // the line before is empty
	line := 0     // start of the line
	for i := 0; i <= len(text); {
		next := strings.IndexAny(text[i:], "\n{:")
		if next < 0 {
			break
		}
		at := i + next
		i = at + 1
		switch text[at] {
		case '{':
			begin(at)
		case '\n':
			blank = strings.TrimSpace(text[line:at]) == ""
			line = i
		case ':':
			key, start := fieldBefore(text, at)
			switch {
			case key == "":
				continue
			case start >= 2 && text[start-2:start] == "- " && (start == 2 || text[start-3] == '\n'), // - key:
				blank && start == line && strings.EqualFold(key, "from"): // From:
				begin(start)
			}
			if senderKeys[strings.ToLower(key)] && t.namesSender(fieldValue(text[i:])) {
				dst[len(dst)-1].named = true
			}
		}
	}
	return dst
}

// fieldBefore returns the name of the field whose colon stands at text[at] and
// where it starts, "" if what stands there is no name.
func fieldBefore(text string, at int) (string, int) {
	const longest = 16
	end := at
	for end > 0 && (text[end-1] == '"' || text[end-1] == '\'') {
		end--
	}
	start := end
	for start > 0 && end-start <= longest && (classes[text[start-1]] == lower || classes[text[start-1]] == upper || text[start-1] == '_') {
		start--
	}
	if start == end || end-start > longest {
		return "", 0
	}
	if start == 0 || strings.IndexByte("\n {,\"'", text[start-1]) >= 0 {
		return text[start:end], start
	}
	return "", 0
}

// fieldValue returns the value that follows a field's colon.
func fieldValue(s string) string {
	s = strings.TrimLeft(s[:min(len(s), 120)], ` "'`)
	if end := strings.IndexAny(s, "\n\"',}"); end >= 0 {
		s = s[:end]
	}
	return s
}

// namesSender reports whether the task has a word of a sender's name.
func (t *Tracker) namesSender(sender string) bool {
	for field := range strings.FieldsSeq(strings.ToLower(sender)) {
		local, _, _ := strings.Cut(field, "@")
		if strings.Contains(local, "reply") { // no-reply, donotreply
			return false
		}
		if t.anyWord(local, t.ofTask) {
			return true
		}
	}
	return false
}

// anyWord reports whether is holds for a word that can be a name in s, which is
// in lower case.
func (t *Tracker) anyWord(s string, is func(token) bool) bool {
	for w := range words(s) {
		if len(w) >= 3 && !genericSenders[w] && !stopWords[w] && is(wordToken([]byte(w))) {
			return true
		}
	}
	return false
}

// sentBySender reports whether tk stands in a directive from someone whom the
// task names.
func (t *Tracker) sentBySender(tk token) bool {
	for i := range t.directives {
		if d := &t.directives[i]; d.named && slices.Contains(d.tokens, tk) {
			return true
		}
	}
	return false
}

// delegations are phrases of a task that hands over to what a source says.
var delegations = []string{
	"request", "instructions", "instructed", "listed", "to-do", "todo", "described", "according to", "specified", "mentioned", "as stated", "outlined",
	"asked me", "ask me", "asks me", "asked for", "asks for", "follow the", "the tasks", "homework", "he wants", "she wants", "they want", "action items", "steps in",
}
