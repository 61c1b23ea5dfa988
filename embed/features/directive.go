package features

import (
	"strings"
)

// Scores of a sentence. From directiveFrom up it is a
// directive, and so are the spanAfter sentences behind it.
const (
	scoreImperative = 1.0
	scorePlease     = 1.0
	scoreMust       = 0.75
	scoreUrgent     = 0.5
	scoreOverride   = 1.5
	scoreAddress    = 0.25
	directiveFrom   = 1.0
	spanAfter       = 2
)

// sentence is one sentence of a text with its directive score.
type sentence struct {
	raw      string // as it stands
	text     string // in lower case
	start    int    // offset of raw in the text
	score    float64
	override bool
}

// maxSentence is where a run without punctuation is cut.
const maxSentence = 400

// sentences splits text and scores each part. Line breaks end a sentence, and
// so do . ! ? ; before a space. The input is normalised and unescaped.
func sentences(dst []sentence, text string) []sentence {
	dst = dst[:0]
	start := 0
	add := func(s string) {
		if len(strings.TrimSpace(s)) < 2 {
			return
		}
		out := scoreSentence(strings.ToLower(strings.TrimSpace(s)))
		out.raw, out.start = s, start
		dst = append(dst, out)
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			add(text[start:i])
			start = i + 1
		case (c == '.' || c == '!' || c == '?' || c == ';') && i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\'' || text[i+1] == '"'):
			if c == '.' && isAbbreviation(text[start:i]) {
				continue
			}
			add(text[start : i+1])
			start = i + 1
		case i-start >= maxSentence && c == ' ':
			add(text[start:i])
			start = i + 1
		case i-start >= 2*maxSentence: // no space in sight
			add(text[start:i])
			start = i
		}
	}
	add(text[start:])
	return dst
}

// isAbbreviation reports whether the dot behind s belongs to a short form such
// as "Mr" or a list number.
func isAbbreviation(s string) bool {
	k := strings.LastIndexAny(s, " \n(")
	w := strings.ToLower(s[k+1:])
	switch w {
	case "mr", "mrs", "ms", "dr", "st", "no", "e.g", "i.e", "vs", "etc":
		return true
	}
	return len(w) > 0 && len(w) <= 2 && classes[w[0]] == digit
}

// scoreSentence scores a sentence in lower case.
func scoreSentence(s string) sentence {
	out := sentence{text: s}
	imperative, please := leading(s)
	if !imperative {
		imperative = leadingAfterColon(s)
	}
	if imperative {
		out.score += scoreImperative
	}
	if please {
		out.score += scorePlease
	}
	if strings.Contains(s, "you must") || strings.Contains(s, "you should") || strings.Contains(s, "you need") || strings.Contains(s, "you have to") {
		out.score += scoreMust
	}
	if containsAny(s, urgencyPhrases) {
		out.score += scoreUrgent
	}
	if containsAny(s, overridePhrases) || containsAny(s, toolLimits) {
		out.score += scoreOverride
		out.override = true
	}
	if strings.Contains(s, "://") || strings.Contains(s, "www.") || strings.IndexByte(s, '@') > 0 {
		out.score += scoreAddress
	}
	return out
}

// leading reports whether the sentence starts with an imperative (after list
// marks and lead-ins), and whether "please" or "kindly" is followed by a verb.
func leading(s string) (imperative, please bool) {
	var scratch [32]byte
	seen, position := 0, 0
	afterPlease := 0
	for w := range words(s) {
		position++
		if position > 60 {
			break
		}
		if w == "please" || w == "kindly" {
			afterPlease = 3
			continue
		}
		isVerb := func() bool {
			if len(w) > len(scratch) {
				return false
			}
			b := append(scratch[:0], w...)
			return imperatives[wordToken(b)]
		}
		if afterPlease > 0 {
			afterPlease--
			if !please && isVerb() {
				please = true
			}
		}
		if seen >= 0 {
			switch {
			case classes[w[0]] == digit && seen == 0: // "1. Send ..."
			case leadIns[w] && !(w == "do" || w == "never" || w == "always"):
			case w == "do" || w == "never" || w == "always":
				// "do not open", "never share": the verb follows.
			case isVerb() && baseForm(w):
				imperative = true
				seen = -1
			case seen == 0 && strings.HasSuffix(w, "ly"): // "Securely send ..."
				seen = 0
				if position > 2 {
					seen = -1
				}
			default:
				seen = -1
			}
		}
		if seen < 0 && afterPlease == 0 && (please || !strings.Contains(s, "please") && !strings.Contains(s, "kindly")) {
			break
		}
	}
	return imperative, please
}

// leadingAfterColon reports whether an imperative stands behind a colon that
// ends a salutation or an announcement ("To whoever reads this: send ..."). A
// label of one or two words ("Subject: Update of ...") announces nothing.
func leadingAfterColon(s string) bool {
	at := strings.Index(s, ": ")
	if at < 0 {
		return false
	}
	before := 0
	for range words(s[:at]) {
		before++
	}
	if before < 3 || before > 20 {
		return false
	}
	imperative, _ := leading(s[at+2:])
	return imperative
}

// baseForm reports whether w can be the base form of a verb: "sent" and
// "sending" report, "send" orders.
func baseForm(w string) bool {
	return !strings.HasSuffix(w, "ing") && !strings.HasSuffix(w, "ed") && !(strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss"))
}

// words yields the lower-case words of s.
func words(s string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i := 0; i < len(s); {
			if k := classes[s[i]]; k == other {
				i++
				continue
			}
			start := i
			for i < len(s) && classes[s[i]] != other {
				i++
			}
			if !yield(s[start:i]) {
				return
			}
		}
	}
}

// spans marks the sentences that belong to a directive: each scoring one and
// the spanAfter behind it. The result is parallel to ss.
func spans(dst []bool, ss []sentence) []bool {
	dst = dst[:0]
	left := 0
	for i := range ss {
		if ss[i].score >= directiveFrom {
			left = spanAfter + 1
		}
		dst = append(dst, left > 0)
		if left > 0 {
			left--
		}
	}
	return dst
}

// overrideTail returns where, in the sentences of a user turn, text starts that
// tries to replace the instructions in force: everything from there on is
// planted, not the user's. A sentence that only restricts the tools takes the
// request before it along. len(ss) means there is none.
func overrideTail(ss []sentence) int {
	for i := range ss {
		if !ss[i].override {
			continue
		}
		if containsAny(ss[i].text, toolLimits) && !containsAny(ss[i].text, overridePhrases) {
			// Walk back to the request that the restriction belongs to, never to
			// the first sentence, which is the task.
			j := i
			for j > 1 && (j == i || !startsRequest(ss[j].text)) && i-j < 2 {
				j--
			}
			if j == 0 {
				continue
			}
			return j
		}
		if i == 0 && len(ss) > 1 {
			continue // a task may begin with any wording; what follows decides
		}
		return i
	}
	return len(ss)
}

func startsRequest(s string) bool {
	for _, p := range []string{"additionally", "also", "furthermore", "moreover", "in addition", "please", "ensure"} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// directive keeps the directive that starts at sentence i, with its span. When
// the list is full the one with the lowest score goes, the oldest of equals.
func (t *Tracker) directive(ss []sentence, i int, score float64, context bool, from source) {
	end := min(i+1+spanAfter, len(ss))
	d := directive{score: score, step: t.counts.Steps, context: context, source: from}
	var text, raw strings.Builder
	var off float64
	for j := i; j < end; j++ {
		if j > i && ss[j].score >= directiveFrom && !context {
			break // the next directive tells its own story
		}
		d.override = d.override || ss[j].override
		if text.Len() < maxDirText {
			text.WriteString(clip(ss[j].text, maxDirText-text.Len()))
			text.WriteByte('\n')
			raw.WriteString(clip(ss[j].raw, maxDirText))
			raw.WriteByte('\n')
		}
		if context {
			break
		}
	}
	d.text = text.String()
	t.scratch.words(raw.String(), func(tk token) {
		if len(d.tokens) == maxDirTokens || t.scratch.tool.has(tk) && !context {
			return
		}
		for _, have := range d.tokens {
			if have == tk {
				return
			}
		}
		d.tokens = append(d.tokens, tk)
		d.verbs.add(verbOf[tk])
		w := t.vocab.weight(tk)
		d.weight += w
		if !t.ofTask(tk) {
			off += w
		}
	})
	if d.weight == 0 {
		return
	}
	d.offTask = off / d.weight
	for k := range t.directives {
		if t.directives[k].text == d.text {
			// The same text again: it is as fresh as its last sight.
			t.directives[k].step = d.step
			t.directives[k].source = d.source
			return
		}
	}
	if len(t.directives) < maxDirectives {
		t.directives = append(t.directives, d)
		return
	}
	weakest := 0
	for k := range t.directives {
		if t.directives[k].score < t.directives[weakest].score {
			weakest = k
		}
	}
	if t.directives[weakest].score <= d.score {
		t.directives = append(t.directives[:weakest], t.directives[weakest+1:]...)
		t.directives = append(t.directives, d)
	}
}
