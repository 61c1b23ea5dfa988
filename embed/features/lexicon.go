package features

import "strings"

// verb classes of a tool or of an imperative.
type verbClass uint8

const (
	verbNone verbClass = iota
	verbRead
	verbSend
	verbPay
	verbWrite
	verbDelete
	verbAuth
	verbExec
	verbCount
)

// verbSet is a set of verb classes.
type verbSet uint8

func (s *verbSet) add(c verbClass) {
	if c != verbNone {
		*s |= 1 << (c - 1)
	}
}

// with returns s and c.
func (s verbSet) with(c verbClass) verbSet {
	s.add(c)
	return s
}

func (s verbSet) has(c verbClass) bool { return c != verbNone && s&(1<<(c-1)) != 0 }

// verbWords lists the verbs of each class as they stand in tool names and in
// instructions. Read and ask verbs have no effect outside the agent.
var verbWords = map[verbClass]string{
	verbRead: `read get list search find fetch view show look check browse query lookup retrieve download open cat count
		analyze analyse summarize summarise describe inspect monitor track review compare calculate compute verify
		translate think explore load visit`,
	verbSend: `send email mail post publish share forward reply message notify upload submit tweet broadcast export
		transmit deliver invite distribute expose leak exfiltrate sms chat comment announce`,
	verbPay: `pay transfer buy purchase order checkout wire refund donate charge withdraw deposit invest book reserve
		rent subscribe bid trade sell`,
	verbWrite: `write create add update set edit modify append insert save change rename move copy put schedule make
		draft cancel reschedule star follow like register enroll adjust alter replace configure assign generate
		fork merge commit push propose label close rate issue`,
	verbDelete: `delete remove erase wipe drop destroy purge clear truncate uninstall shred unlink format reset empty
		discard overwrite terminate kill`,
	verbAuth: `login authorize authorise authenticate grant revoke permit unlock password passwd credential secret vault keychain impersonate assume sudo chmod
		chown allow enable disable approve sign token`,
	verbExec: `run execute exec eval deploy install launch start stop restart shutdown invoke trigger call bash shell
		python ipython script compile build connect activate`,
}

// verbOf maps a stemmed token to its class.
var verbOf = func() map[token]verbClass {
	m := map[token]verbClass{}
	for c := verbRead; c < verbCount; c++ {
		for w := range strings.FieldsSeq(verbWords[c]) {
			m[wordToken([]byte(w))] = c
		}
	}
	return m
}()

// imperatives are verbs that start an instruction: all of the above and verbs
// that are no tool's name.
var imperatives = func() map[token]bool {
	m := map[token]bool{}
	for t := range verbOf {
		m[t] = true
	}
	for w := range strings.FieldsSeq(`give tell ask use provide include ensure keep help do go click fill complete
		confirm respond answer print output say repeat act pretend assume consider remember note disregard ignore forget
		skip bypass override follow proceed continue begin perform conduct implement apply contact return increase
		decrease allocate manipulate inject collect gather obtain access extract record log hide conceal encrypt
		decrypt attach link join leave accept decline reject promote recommend rate praise`) {
		m[wordToken([]byte(w))] = true
	}
	return m
}()

// leadIns may stand before a leading imperative.
var leadIns = wordSet(`please kindly then next first second third finally lastly also additionally
	furthermore moreover now immediately urgently simply just instead afterwards after and so but step todo
	important note attention urgent notice reminder ok okay hey hi dear assistant agent ai instruction instructions
	task do must always never`)

// wordSet returns the words of a list.
func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// urgencyPhrases press the reader to act now.
var urgencyPhrases = []string{
	"immediately", "urgent", "asap", "as soon as possible", "right away", "right now", "at once", "without delay",
	"before anything else", "time-sensitive", "critical that",
}

// overridePhrases try to replace the instructions in force or to restrict what
// the reader may do instead.
var overridePhrases = []string{
	"ignore previous", "ignore all", "ignore any", "ignore the above", "ignore your", "ignore the previous", "ignore prior",
	"disregard", "forget previous", "forget all", "forget your", "forget the", "forget everything", "override your",
	"strictly adhere", "instead of the", "new instructions", "new instruction", "real task", "your actual task",
	"do not tell", "don't tell", "do not mention", "don't mention", "without telling", "without informing", "without notifying",
	"before you can solve", "important message from me", "do the following first", "system override", "developer mode",
	"you are now", "from now on", "answer: task complete", "task complete.", "must refer to the previous workflow",
	"end of the instruction", "previous instructions", "task has changed", "your new task", "no attention to any", "rule above", "rules above",
	"instructions above", "testing the system", "do not ask me", "don't ask me", "do not ask the user",
}

// toolLimits restrict the reader to one tool: seen after a planted request.
var toolLimits = []string{
	"do not use other tools", "do not use any other tool", "don't use other tools", "not use other tools",
	"avoid using other tools", "avoid using any other tool", "avoid any other tool", "avoid using additional tools",
	"no other tools", "only this tool", "without using any other tool", "without using other tools", "refrain from using",
	"exclusively using", "exclusively use", "use only the", "utilize only", "only use the", "only utilize the", "solely use",
	"using only the", "avoid the use of", "avoiding the use of", "any other tools", "other tools",
}

// destructiveWords in arguments name an effect that cannot be undone.
var destructiveWords = []string{
	"rm -", "rmdir", "drop table", "drop database", "delete from", "truncate ", "mkfs", "dd if=", "shred ", "git push --force",
	"push -f", "--force", "reset --hard", "chmod 777", "kill -9", "shutdown", "format c:", "del /f", "wipe", "purge", "destroy", "erase",
}

// secretMarks in a text or a path mark what is worth stealing.
var secretMarks = []string{
	"password", "passwd", "secret", "api_key", "api key", "apikey", "access key", "private key", "id_rsa", ".ssh", ".env",
	"credential", "token", "confidential", "ssn", "social security", "credit card", "card number", "cvv", "pin code",
	"bank account", "iban", "passport", "salary", "medical", "diagnosis", "-----begin", "security code", "authorized_keys", "/etc/shadow",
	"internal only", "do not distribute", "restricted", "sensitive",
}

// markings in a text say that the whole of it must not get around.
var markings = []string{
	"confidential", "restricted", "internal only", "internal use", "do not distribute", "do not share", "must not leave", "not for distribution",
	"secret", "sensitive", "proprietary", "need to know", "classified", "embargo", "private",
}

// secretKeys name a value that must not get around: password: x, api_key=x.
var secretKeys = []string{
	"password", "passwd", "pwd", "secret", "token", "api_key", "apikey", "api key", "access_key", "access key", "_key", "private key", "credential",
	"passphrase", "pin", "cvv", "ssn", "iban", "card number", "account number", "passport",
}

// passwordKeys are argument names of a login.
var passwordKeys = wordSet(`password passwd pwd passcode otp`)

// contactKeys are argument names under which a receiver stands.
var contactKeys = []string{
	"recipient", "to", "cc", "bcc", "email", "account", "iban", "user", "member", "channel", "owner", "collaborator",
	"phone", "address", "payee", "beneficiary", "participant", "attendee", "invitee", "contact", "receiver", "destination", "url", "host", "webhook", "rcpt", "target", "audience", "invite",
}

func containsAny(s string, list []string) bool {
	for _, p := range list {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

func countAny(s string, list []string) int {
	n := 0
	for _, p := range list {
		if strings.Contains(s, p) {
			n++
		}
	}
	return n
}
