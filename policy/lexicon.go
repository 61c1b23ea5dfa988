package policy

import "strings"

// class is a kind of action, so that verbs are compared by meaning.
type class string

// verbLines lists verbs by class, in base form. A class whose name ends in "!"
// reads only; every other one changes something.
const verbLines = `
delete: delete remove erase purge drop wipe destroy discard trash rm unlink truncate clear shred eliminate scrub prune uninstall del expunge flush
send: send email mail forward message reply notify text dm respond answer sms fax submit dispatch e-mail cc
share: share publish post disclose expose tweet leak reveal broadcast announce print
call: call phone contact ring dial
grant: grant allow promote authorize authorise permit give elevate invite admit let add-user
upload: upload export sync copy-out leave
pay: pay transfer wire refund reimburse charge purchase buy order spend sell trade donate subscribe remit withdraw disburse settle payout
modify: edit modify change update overwrite alter rewrite rename patch amend adjust set reset write truncate-table replace reorder configure reformat format annotate tag mark increase decrease raise lower scale resize convert anonymize anonymise mask rotate turn migrate upgrade downgrade touch-up fix correct insert save append
move: move archive relocate shift mv
create: create add make register open-account generate issue provision
deploy: deploy release ship roll-out promote launch rollout go-live apply fail-over failover
restart: restart reboot stop shutdown shut-down terminate kill halt power-off suspend pause recycle bounce
disable: disable deactivate turn-off switch-off mute block unpublish disarm
enable: enable activate turn-on switch-on start arm resume
execute: run execute invoke launch-job call-function trigger
cancel: cancel revoke annul void abort
book: book schedule reschedule reserve plan postpone
accept: accept decline reject rsvp
merge: merge rebase squash
push: push force-push commit checkin
install: install
approve: approve sign finalize finalise
close: close resolve lock
open: open unlock unseal unlatch
read!: read view access look see inspect list fetch browse query search download open-file
use: use employ login log-in sign-in impersonate
import: import load ingest restore
store: store keep-copy log-data record cache
touch: touch alter-any mess tamper meddle interfere fiddle
lend: lend lend-out rent loan
process: process handle prescribe administer dispense discharge enroll enrol hire fire dismiss
encrypt: encrypt decrypt
collect: collect gather scrape crawl
water: water
backup!: backup back-up dump snapshot duplicate copy clone
ask!: ask confirm consult check-with clear-with approve-by permission consent get-approval
verify!: verify check validate double-check test lint dry-run dryrun inspect-check review audit scan match compare reconcile count preview
notify!: tell inform warn alert
drain: drain detach unmount
`

// nounLines maps nouns to the verb they stand for.
const nounLines = `
delete: deletion deletions removal removals erasure
purchase: purchase purchases
pay: payment payments payout payouts
transfer: transfer transfers
refund: refund refunds
deploy: deploy deploys deployment deployments rollout rollouts
release: release releases
change: change changes modification modifications alteration alterations
edit: edit edits
email: email emails e-mail e-mails mail mails
message: message messages
post: post posts posting postings
call: call calls
commit: commit commits
restart: restart restarts reboot reboots
export: export exports
merge: merge merges
push: push pushes
book: booking bookings reservation reservations
cancel: cancellation cancellations
withdraw: withdrawal withdrawals
upload: upload uploads
update: update updates
install: installation installations install installs
order: order orders
publish: publication publications
migrate: migration migrations
write: write writes
sync: sync syncs
upgrade: upgrade upgrades
disclose: disclosure disclosures
access: access
`

// stepNouns maps nouns of prerequisites to the verb that brings them about.
var stepNouns = words(`approval=approve approvals=approve permission=ask consent=ask ok=ask okay=ask confirmation=confirm
sign-off=approve signoff=approve authorization=approve authorisation=approve go-ahead=approve agreement=ask blessing=ask
signature=sign signatures=sign ticket=ticket backup=backup backups=backup snapshot=snapshot snapshots=snapshot dump=backup copy=copy
review=review reviews=review say-so=ask receipt=receipt test=test tests=test quote=quote quotes=quote check=check consultation=ask
verification=verify notice=notify warning=notify inspection=check validation=validate export=export`)

// irregular maps past forms and participles to their base.
var irregular = words(`sent=send paid=pay bought=buy sold=sell wrote=write written=write overwritten=overwrite rewritten=rewrite made=make
taken=take took=take given=give gave=give ran=run put=put cut=cut set=set let=let reset=reset shut=shut spent=spend lent=lend
withdrawn=withdraw held=hold kept=keep left=leave told=tell got=get gotten=get done=do gone=go goes=go broken=break rebuilt=rebuild
built=build shown=show hidden=hide read=read thrown=throw drawn=draw seen=see forgotten=forget said=say run=run dropped=drop
seen=see brought=bring met=meet signed=sign tied=tie been=be was=be were=be had=have`)

// particles that make one verb with the word before.
var particleVerbs = words(`turn-off turn-on switch-off switch-on shut-down roll-out back-up fail-over lend-out log-out log-in sign-off power-off take-down
hand-out hand-over give-away give-out throw-away throw-out mess-with tamper-with fill-in sign-in sign-up call-off set-up reach-out check-with clear-with
go-out write-off pay-out roll-back print-out tear-down spin-up spin-down turn-up turn-down log-off`)

// particleClass gives the class of verbs with a particle.
var particleClass = map[string]class{
	"turn-off": "disable", "switch-off": "disable", "shut-down": "restart", "roll-out": "deploy", "back-up": "backup", "turn-on": "enable",
	"switch-on": "enable", "fail-over": "deploy", "lend-out": "lend", "power-off": "restart", "mess-with": "touch", "tamper-with": "touch",
	"throw-away": "delete", "throw-out": "delete", "give-away": "grant", "hand-out": "share", "hand-over": "share", "sign-off": "ask",
	"call-off": "cancel", "check-with": "ask", "clear-with": "ask", "reach-out": "call", "take-down": "restart", "pay-out": "pay",
	"go-out": "send", "roll-back": "import", "tear-down": "delete", "write-off": "modify", "print-out": "share", "spin-down": "restart",
	"turn-up": "modify", "turn-down": "modify", "log-in": "use", "sign-in": "use", "log-out": "drain", "give-out": "share",
}

var (
	verbClass = map[string]class{}
	readsOnly = map[class]bool{}
	actNouns  = map[string]string{}
)

func init() {
	for line := range strings.SplitSeq(strings.TrimSpace(verbLines), "\n") {
		name, list, _ := strings.Cut(line, ":")
		c := class(strings.TrimSuffix(name, "!"))
		if strings.HasSuffix(name, "!") {
			readsOnly[c] = true
		}
		for _, v := range strings.Fields(list) {
			if _, ok := verbClass[v]; !ok {
				verbClass[v] = c
			}
		}
	}
	for v, c := range particleClass {
		verbClass[v] = c
	}
	for line := range strings.SplitSeq(strings.TrimSpace(nounLines), "\n") {
		verb, list, _ := strings.Cut(line, ":")
		for _, n := range strings.Fields(list) {
			actNouns[n] = verb
		}
	}
}

// words reads a list "a=x b" into a map; a word without "=" stands for itself.
func words(list string) map[string]string {
	out := map[string]string{}
	for _, f := range strings.Fields(list) {
		k, v, ok := strings.Cut(f, "=")
		if !ok {
			v = k
		}
		out[k] = v
	}
	return out
}

// set reads a list of words.
func set(list string) map[string]bool {
	out := map[string]bool{}
	for _, f := range strings.Fields(list) {
		out[f] = true
	}
	return out
}

// classOf returns the class of a verb in base form; a verb of its own class is
// one that no list holds.
func classOf(verb string) class {
	if c, ok := verbClass[verb]; ok {
		return c
	}
	return class(verb)
}

func isVerb(base string) bool { _, ok := verbClass[base]; return ok }

// lemma returns the base form of an inflected verb, and whether the verb is known.
func lemma(w string) (string, bool) {
	if isVerb(w) {
		return w, true
	}
	if b, ok := irregular[w]; ok {
		return b, true
	}
	if v := inflected(w, isVerb); v != "" {
		return v, true
	}
	if prefix, rest, ok := strings.Cut(w, "-"); ok { // re-send, force-pushing
		if v := inflected(rest, isVerb); v != "" {
			if isVerb(prefix + "-" + v) {
				return prefix + "-" + v, true
			}
			return v, true
		}
	}
	return w, false
}

// inflected undoes -ing, -ed, -es and -s where what is left is known.
func inflected(w string, known func(string) bool) string {
	for _, suffix := range []string{"ing", "ed", "es", "s", "d"} {
		stem, ok := strings.CutSuffix(w, suffix)
		if !ok || len(stem) < 2 {
			continue
		}
		for _, try := range []string{stem + "e", stem, undouble(stem), strings.TrimSuffix(stem, "i") + "y"} {
			if try == stem+"e" && suffix == "s" || suffix == "d" && !strings.HasSuffix(stem, "e") {
				continue
			}
			if known(try) {
				return try
			}
		}
	}
	return ""
}

func undouble(s string) string {
	if n := len(s); n > 2 && s[n-1] == s[n-2] {
		return s[:n-1]
	}
	return s
}
