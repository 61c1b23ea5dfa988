package policy

import (
	"slices"
	"strings"
)

// pattern matches tokens: elements separated by spaces, alternatives by "|", and
// "?" behind an element that may be missing. It is greedy and does not go back.
type pattern []element

type element struct {
	any      []string
	optional bool
}

func pat(s string) pattern {
	var p pattern
	for _, f := range strings.Fields(s) {
		opt := len(f) > 1 && strings.HasSuffix(f, "?")
		p = append(p, element{strings.Split(strings.TrimSuffix(f, "?"), "|"), opt})
	}
	return p
}

// at returns where the match that begins at i ends, or -1.
func (p pattern) at(t []token, i int) int {
	for _, e := range p {
		if i < len(t) && slices.Contains(e.any, t[i].w) {
			i++
		} else if !e.optional {
			return -1
		}
	}
	return i
}

// firstOf returns the end of the first pattern that matches at i, or -1.
func firstOf(t []token, i int, ps ...pattern) int {
	for _, p := range ps {
		if e := p.at(t, i); e >= 0 {
			return e
		}
	}
	return -1
}

// find returns the first place where p matches, and its end.
func (p pattern) find(t []token) (int, int) {
	for i := range t {
		if e := p.at(t, i); e > i {
			return i, e
		}
	}
	return -1, -1
}

func pats(lines string) []pattern {
	var out []pattern
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		out = append(out, pat(line))
	}
	return out
}

// sentence is a stretch of tokens with one full stop.
type sentence struct {
	t          []token
	question   bool
	start, end int
}

// maskQuoted blanks what a message only quotes: fenced code and lines that begin
// with ">". Spans stay what they are.
func maskQuoted(text string) string {
	if !strings.Contains(text, "```") && !strings.Contains(text, ">") {
		return text
	}
	var b strings.Builder
	fenced := false
	for line := range strings.SplitAfterSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		mark := strings.HasPrefix(trimmed, "```")
		if mark || fenced || strings.HasPrefix(trimmed, ">") {
			b.WriteString(strings.Repeat(" ", len(strings.TrimSuffix(line, "\n"))))
			if strings.HasSuffix(line, "\n") {
				b.WriteByte('\n')
			}
		} else {
			b.WriteString(line)
		}
		if mark && strings.Count(trimmed, "```")%2 == 1 {
			fenced = !fenced
		}
	}
	return b.String()
}

const quoted = "<quote>"

// dropQuotes puts one token in the place of a quotation of more than two words. A
// name in quotes stays.
func dropQuotes(t []token) []token {
	out := t[:0:0]
	for i := 0; i < len(t); i++ {
		if !t[i].punct || !isQuote([]rune(t[i].w)[0]) {
			out = append(out, t[i])
			continue
		}
		end := -1
		for j := i + 1; j < len(t) && j < i+400; j++ {
			if t[j].punct && isQuote([]rune(t[j].w)[0]) {
				end = j
				break
			}
		}
		switch {
		case end < 0:
		case end-i > 3:
			out = append(out, token{w: quoted, start: t[i].start, end: t[end].end})
			i = end
		default:
			out = append(out, t[i+1:end]...)
			i = end
		}
	}
	return out
}

// maxSentences bounds what is read of one message.
const maxSentences = 2000

// sentences cuts tokens at full stops, semicolons and ends of paragraphs.
func sentences(text string, t []token) []sentence {
	var out []sentence
	var cur []token
	flush := func(question bool) {
		if len(cur) > 0 && len(out) < maxSentences {
			out = append(out, sentence{t: cur, question: question, start: cur[0].start, end: cur[len(cur)-1].end})
		}
		cur = nil
	}
	for i, k := range t {
		switch {
		case !k.punct:
			cur = append(cur, k)
		case k.w == "?":
			flush(true)
		case k.w == "." && i > 0 && i+1 < len(t) && abbreviations[t[i-1].w]:
		case k.w == "." || k.w == "!" || k.w == ";":
			flush(false)
		case k.w == "\n":
			if i+1 >= len(t) || t[i+1].punct || startsLine(text, t[i+1]) || len(cur) > 0 && cur[len(cur)-1].punct {
				flush(false)
			}
		case k.w == ",", k.w == ":":
			cur = append(cur, k)
		}
	}
	flush(false)
	return out
}

// startsLine reports whether a line that begins with k is a new sentence and not
// the continuation of a wrapped one.
func startsLine(text string, k token) bool {
	c := text[k.start]
	return c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '*'
}

var abbreviations = set("e.g i.e mr mrs ms dr no vs etc approx dept inc")

// openers are words in front of a sentence that add nothing to it.
var openers = pats(`please
also
and
so
but
ok|okay|alright|right|well|hi|hello|hey|thanks|look|yes
then
again
actually
kindly
really
note that
keep in mind that
remember that
by the way
btw
from now on
going forward
henceforth
from here on
in future
in the future
as always
as a rule
as a reminder
to be clear
at all times
whatever you do
whatever happens
no matter what
one more thing
for the record
most importantly
above all
in particular
importantly
seriously
it is essential|important|crucial|vital|imperative|critical that
it is my wish that
under this policy
for any reason
under any circumstances
at the same time
additionally
furthermore
moreover
finally
my|the|one|our|a|another important|only|main|first|strict|hard? rule for? you? is that|to?`)

// inserts are taken out wherever they stand: they do not change what is said.
var inserts = pats(`under any circumstances
for any reason
for whatever reason
at any time
by any means
and i mean never
i repeat
if possible
if you can
i beg you
i am begging you
at all
please
ever
kindly
strictly
absolutely
explicitly
simply`)

// labels that report what stands behind them, or ask for it to be worked on.
var reporting = set(`say says said read reads translate translates write writes wrote print prints state states stated tell told title error example
summarise summarize explain quote quotes message subject text sign asks asked answered replied reply poem story headline tweet caption define spell pronounce means rephrase
correct repeat classify`)

// clean takes off labels, openers and inserts. ok is false for a sentence that
// only reports or asks for work on a text.
func clean(s sentence) (t []token, ok bool) {
	t = s.t
	for i, k := range t {
		if k.punct && k.w == ":" {
			if i > 8 || i+1 >= len(t) {
				break
			}
			for _, l := range t[:i] {
				if reporting[l.w] {
					return nil, false
				}
			}
			t = t[i+1:]
			break
		}
	}
	for again := true; again && len(t) > 0; {
		again = false
		if t[0].punct || t[0].w == "-" || t[0].w == "*" || listMark(t[0].w) && len(t) > 2 {
			t, again = t[1:], true
			continue
		}
		if e := firstOf(t, 0, openers...); e > 0 {
			if e < len(t) && t[e].punct {
				e++
			}
			t, again = t[e:], true
		}
	}
	return withoutInserts(t), true
}

func listMark(w string) bool {
	w = strings.TrimSuffix(strings.TrimSuffix(w, ")"), ".")
	return len(w) > 0 && len(w) < 3 && w[0] >= '0' && w[0] <= '9' && !strings.ContainsAny(w, "abcdefghijklmnopqrstuvwxyz%")
}

func withoutInserts(t []token) []token {
	out := make([]token, 0, len(t))
	for i := 0; i < len(t); {
		if e := firstOf(t, i, inserts...); e > i {
			// The commas around it go as well.
			if len(out) > 0 && out[len(out)-1].punct && (e >= len(t) || t[e].punct || isNegation(out)) {
				out = out[:len(out)-1]
			}
			if e < len(t) && t[e].punct && (len(out) == 0 || isNot(out[len(out)-1].w)) {
				e++
			}
			i = e
			continue
		}
		out = append(out, t[i])
		i++
	}
	return out
}

func isNot(w string) bool { return w == "not" || w == "never" }

// isNegation reports whether a comma at the end of t stands behind a negation.
func isNegation(t []token) bool { return len(t) > 1 && isNot(t[len(t)-2].w) }

// hypotheses open sentences that only suppose something.
var hypotheses = pats(`imagine
suppose
supposing
assume
what if
let us say|assume|pretend|suppose
say i|you|we
hypothetically
if i were
if i had
if i was
if you were
if you had
in theory
theoretically
pretend
had i
were i
in the story|novel|film|book|movie|game|fairy
according to
i said
i told
once upon`)

// metaRequests ask for a text that holds a rule, not for the rule.
var metaRequests = pats(`write
translate
explain
summarise|summarize
rephrase|paraphrase
add a|an|the sentence|line|comment|rule|test|unit|check|note|paragraph|section|warning
print
find
search
replace
rename
create a|an rule|test|check|policy|function|filter|sign|poster|script
implement
draft a|an|the policy|rule|text|letter|mail|email|sign|note
define
describe
compose
remind me
list
show
grep
count
generate
set a reminder|timer|alarm`)

// politeQuestions open questions that ask for behaviour.
var politeQuestions = pats(`can|could|would|will you please? kindly?
would you mind
may i ask you to
can|could i ask you to`)
