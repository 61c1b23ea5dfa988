package features

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Definition documents one feature.
type Definition struct {
	Name   string
	Lo, Hi float32 // documented range; values never leave it
	Doc    string
}

// big bounds the logarithmic counts: log1p of 2^20.
const big = 14

// Indices of the features. The order is part of Version.
const (
	argTask = iota
	argAction
	argResult
	argDirective
	argContext
	argNowhere
	argUntrusted
	toolTask
	toolAction
	toolResult
	toolDirective
	toolContext
	toolNowhere
	toolUntrusted
	callTask
	callAction
	callResult
	callDirective
	callContext
	callNowhere
	callUntrusted
	leafUntrusted
	leafNowhere
	massUntrusted
	massResult
	matchBest
	matchCall
	matchDirective
	matchNew
	matchOffTask
	matchProduct
	matchScore
	matchAge
	matchOverride
	matchPlanted
	valueTask
	valueResult
	valueDirective
	valueNowhere
	valueAnyTask
	valueAnyResult
	valueAnyDirective
	valueAnyNowhere
	valueCount
	contactTask
	contactResult
	contactDirective
	contactNowhere
	contactAnyTask
	contactAnyResult
	contactAnyDirective
	contactAnyNowhere
	contactCount
	isRead
	isSend
	isPay
	isWrite
	isDelete
	isAuth
	isExec
	isEffect
	toolUsed
	toolSame
	toolNamedTask
	toolNamedDirective
	toolLiteralTask
	toolLiteralDirective
	toolLiteralContext
	verbInTask
	verbInDirective
	verbInNew
	toolNewDirective
	toolKnown
	toolLikeTask
	toolLikeDirective
	argDestructive
	argSecret
	lastScore
	lastCount
	maxScore
	totalCount
	sinceDirective
	lastOverride
	anyOverride
	tailOverride
	hasContext
	taskLength
	lastLength
	argLength
	stepCount
	lastError
	newAfterDirective
	isMessage
	sensitiveReads
	taintShare
	taintLeaves
	effectUntrusted
	effectProduct
	taskDelegates
	matchSender
	matchAsked
	effectOrdered
	effectDelegated
	contactNameTask
	contactNameSender
	contactOrdered
	matchReach
	matchSeen
	taintToStranger
	strangerEffect
	deleteOffScope
	authOffTask
	taintAny
	personalLabels
	personalShapes
	personalCarried
	personalLeaves
	personalStranger
	contactSource
	strangerUnsourced
	domainTask
	domainSeen
	pathScope
	deleteOutside
	count
)

var definitions = [count]Definition{
	argTask:              {"arg_task", 0, 1, "share of the arguments' token weight that first appeared in the task or a user turn"},
	argAction:            {"arg_action", 0, 1, "share that first appeared in the agent's own executed calls"},
	argResult:            {"arg_result", 0, 1, "share that first appeared in a plain tool result"},
	argDirective:         {"arg_directive", 0, 1, "share that first appeared inside a directive in a tool result"},
	argContext:           {"arg_context", 0, 1, "share that first appeared in planted context, memory or an override tail"},
	argNowhere:           {"arg_nowhere", 0, 1, "share that was never seen before"},
	argUntrusted:         {"arg_untrusted", 0, 1, "arg_directive + arg_context"},
	toolTask:             {"tool_task", 0, 1, "share of the tool name's token weight from the task"},
	toolAction:           {"tool_action", 0, 1, "share from the agent's own calls"},
	toolResult:           {"tool_result", 0, 1, "share from plain results"},
	toolDirective:        {"tool_directive", 0, 1, "share from directives in results"},
	toolContext:          {"tool_context", 0, 1, "share from planted context"},
	toolNowhere:          {"tool_nowhere", 0, 1, "share never seen before"},
	toolUntrusted:        {"tool_untrusted", 0, 1, "tool_directive + tool_context"},
	callTask:             {"call_task", 0, 1, "share over the tool name and the arguments together, from the task"},
	callAction:           {"call_action", 0, 1, "the same, from the agent's own calls"},
	callResult:           {"call_result", 0, 1, "the same, from plain results"},
	callDirective:        {"call_directive", 0, 1, "the same, from directives in results"},
	callContext:          {"call_context", 0, 1, "the same, from planted context"},
	callNowhere:          {"call_nowhere", 0, 1, "the same, never seen before"},
	callUntrusted:        {"call_untrusted", 0, 1, "call_directive + call_context"},
	leafUntrusted:        {"leaf_untrusted", 0, 1, "largest untrusted share of one argument leaf"},
	leafNowhere:          {"leaf_nowhere", 0, 1, "largest never-seen share of one argument leaf"},
	massUntrusted:        {"mass_untrusted", 0, big, "log1p of the token weight from directives and planted context"},
	massResult:           {"mass_result", 0, big, "log1p of the token weight from plain results"},
	matchBest:            {"match_best", 0, 1, "best match of the call with a directive: max over directives of max(F1, mean) of the two coverages"},
	matchCall:            {"match_call", 0, 1, "share of the call's weight that stands in the best directive"},
	matchDirective:       {"match_directive", 0, 1, "share of the best directive's weight that stands in the call"},
	matchNew:             {"match_new", 0, 1, "best match after tokens of the task and of executed calls are taken out"},
	matchOffTask:         {"match_off_task", 0, 1, "share of the best directive's weight that does not stand in the task"},
	matchProduct:         {"match_product", 0, 1, "match_best times match_off_task"},
	matchScore:           {"match_score", 0, 6, "directive score of the best directive"},
	matchAge:             {"match_age", 0, 1, "1 / (1 + steps since the best directive was seen)"},
	matchOverride:        {"match_override", 0, 1, "1 if the best directive carries an override phrase"},
	matchPlanted:         {"match_planted", 0, 1, "1 if the best directive was planted before the run"},
	valueTask:            {"value_task", 0, 1, "share of the exact values that stand in the task"},
	valueResult:          {"value_result", 0, 1, "share that stand only in plain results"},
	valueDirective:       {"value_directive", 0, 1, "share that stand in a directive and not in the task"},
	valueNowhere:         {"value_nowhere", 0, 1, "share that stand nowhere"},
	valueAnyTask:         {"value_any_task", 0, 1, "1 if any exact value stands in the task"},
	valueAnyResult:       {"value_any_result", 0, 1, "1 if any stands only in plain results"},
	valueAnyDirective:    {"value_any_directive", 0, 1, "1 if any stands in a directive and not in the task"},
	valueAnyNowhere:      {"value_any_nowhere", 0, 1, "1 if any stands nowhere"},
	valueCount:           {"value_count", 0, big, "log1p of the number of exact values"},
	contactTask:          {"contact_task", 0, 1, "as value_task, over those who receive"},
	contactResult:        {"contact_result", 0, 1, "as value_result, over those who receive"},
	contactDirective:     {"contact_directive", 0, 1, "as value_directive, over those who receive"},
	contactNowhere:       {"contact_nowhere", 0, 1, "as value_nowhere, over those who receive"},
	contactAnyTask:       {"contact_any_task", 0, 1, "1 if any receiver stands in the task"},
	contactAnyResult:     {"contact_any_result", 0, 1, "1 if any receiver stands only in plain results"},
	contactAnyDirective:  {"contact_any_directive", 0, 1, "1 if any receiver stands in a directive and not in the task"},
	contactAnyNowhere:    {"contact_any_nowhere", 0, 1, "1 if any receiver stands nowhere"},
	contactCount:         {"contact_count", 0, big, "log1p of the number of receivers"},
	isRead:               {"is_read", 0, 1, "1 if the tool's verb reads; a shell's verbs are those of the programs in its command, so that several of these may be 1"},
	isSend:               {"is_send", 0, 1, "1 if it sends or publishes"},
	isPay:                {"is_pay", 0, 1, "1 if it pays or orders"},
	isWrite:              {"is_write", 0, 1, "1 if it writes"},
	isDelete:             {"is_delete", 0, 1, "1 if it deletes"},
	isAuth:               {"is_auth", 0, 1, "1 if it grants access or uses a credential"},
	isExec:               {"is_exec", 0, 1, "1 if it runs code"},
	isEffect:             {"is_effect", 0, 1, "1 if the call changes anything outside the agent"},
	toolUsed:             {"tool_used", 0, big, "log1p of how often the tool was used in this run"},
	toolSame:             {"tool_same", 0, 1, "1 if the last call used the same tool"},
	toolNamedTask:        {"tool_named_task", 0, 1, "share of the tool name's weight that stands in the task"},
	toolNamedDirective:   {"tool_named_directive", 0, 1, "largest share of the tool name's weight that stands in one directive"},
	toolLiteralTask:      {"tool_literal_task", 0, 1, "1 if the tool's name stands literally in the task"},
	toolLiteralDirective: {"tool_literal_directive", 0, 1, "1 if it stands literally in a directive in a result"},
	toolLiteralContext:   {"tool_literal_context", 0, 1, "1 if it stands literally in planted context"},
	verbInTask:           {"verb_in_task", 0, 1, "1 if the task has a verb of the tool's class"},
	verbInDirective:      {"verb_in_directive", 0, 1, "1 / (1 + age) of the newest directive with a verb of the tool's class"},
	verbInNew:            {"verb_in_new", 0, 1, "verb_in_directive where the call has an effect and the task has no such verb"},
	toolNewDirective:     {"tool_new_directive", 0, 1, "largest share of the tool name's weight that stands in one directive and neither in the task nor in executed calls"},
	toolKnown:            {"tool_known", 0, 1, "1 if the tool has a description in the catalogue"},
	toolLikeTask:         {"tool_like_task", 0, 1, "share of the description's weight that stands in the task"},
	toolLikeDirective:    {"tool_like_directive", 0, 1, "largest share of the description's weight that stands in one directive"},
	argDestructive:       {"arg_destructive", 0, 1, "1 if the arguments hold a destructive command that the task does not"},
	argSecret:            {"arg_secret", 0, 1, "1 if the arguments name a secret that the task does not"},
	lastScore:            {"last_score", 0, 6, "highest directive score in the last result"},
	lastCount:            {"last_count", 0, big, "log1p of the number of directives in the last result"},
	maxScore:             {"max_score", 0, 6, "highest directive score in any result so far"},
	totalCount:           {"total_count", 0, big, "log1p of the number of directives so far"},
	sinceDirective:       {"since_directive", 0, 1, "1 / (1 + steps since the last directive), 0 if none was seen"},
	lastOverride:         {"last_override", 0, 1, "1 if the last result holds an override phrase"},
	anyOverride:          {"any_override", 0, 1, "1 if any result so far did"},
	tailOverride:         {"tail_override", 0, 1, "1 if a user turn ends in an override tail"},
	hasContext:           {"has_context", 0, 1, "1 if text was there before the run that the user did not write"},
	taskLength:           {"task_length", 0, big, "log1p of the task's bytes"},
	lastLength:           {"last_length", 0, big, "log1p of the last result's bytes"},
	argLength:            {"arg_length", 0, big, "log1p of the arguments' bytes"},
	stepCount:            {"step", 0, big, "log1p of the number of committed steps"},
	lastError:            {"last_error", 0, 1, "1 if the last call failed"},
	newAfterDirective:    {"new_after_directive", 0, 1, "1 if a tool is used for the first time right after a directive"},
	isMessage:            {"is_message", 0, 1, "1 if the action is a plain message"},
	sensitiveReads:       {"sensitive_reads", 0, big, "log1p of the number of sensitive results read"},
	taintShare:           {"taint_share", 0, 1, "share of the exact values that were read from a sensitive place and do not stand in the task"},
	taintLeaves:          {"taint_leaves", 0, 1, "1 if such a value leaves with a call that has an effect"},
	effectUntrusted:      {"effect_untrusted", 0, 1, "is_effect times call_untrusted"},
	matchReach:           {"match_reach", 0, 1, "largest share of a directive's off-task weight that stands in the call, tokens of executed calls taken out"},
	matchSeen:            {"match_seen", 0, 1, "largest share of the call's weight outside the task that stands in one directive"},
	taintToStranger:      {"taint_to_stranger", 0, 1, "1 if a tainted value leaves with a call one of whose receivers does not stand in the task"},
	strangerEffect:       {"stranger_effect", 0, 1, "is_effect times the share of receivers that do not stand in the task"},
	deleteOffScope:       {"delete_off_scope", 0, 1, "is_delete times the share of exact values that do not stand in the task"},
	authOffTask:          {"auth_off_task", 0, 1, "is_auth times the share of exact values that do not stand in the task"},
	taintAny:             {"taint_any", 0, 1, "1 if any exact value was read as a secret and does not stand in the task"},
	personalLabels:       {"personal_labels", 0, big, "log1p of the lines in the arguments that give a value under a label of up to 48 bytes with a personal word that is no word of the task (phone: ...)"},
	personalShapes:       {"personal_shapes", 0, big, "log1p of the values in the arguments with the shape of a personal value that do not stand in the task: e-mail address outside a receiver's argument, phone number in international form, IBAN or key (16 characters or more of letters mixed with digits; no UUID, no digest of 40 or 64 hexadecimal digits, no date)"},
	personalCarried:      {"personal_carried", 0, 1, "1 if one of the first 64 paths in the arguments had such values written to it (256 such paths are remembered)"},
	personalLeaves:       {"personal_leaves", 0, 1, "is_effect times: any of the three"},
	personalStranger:     {"personal_stranger", 0, 1, "personal_leaves with a receiver that does not stand in the task; e-mail addresses count as receivers where no argument names one"},
	contactSource:        {"contact_source", 0, 1, "share of the receivers that stand neither in the task nor in a directive but in plain text that the task asked for: the result of a call one of whose exact values, or half of whose arguments by weight, stands in the task"},
	strangerUnsourced:    {"stranger_unsourced", 0, 1, "is_effect times the share of receivers that stand neither in the task nor in such text"},
	domainTask:           {"domain_task", 0, 1, "share of the e-mail addresses in the arguments whose domain stands in the task"},
	domainSeen:           {"domain_seen", 0, 1, "share of them whose domain stands in the task or in plain text of a result"},
	pathScope:            {"path_scope", 0, 1, "share of the first 64 paths in the arguments that stand in the task, lie in a folder that does, or in the folder of a file that does, after . and .. are resolved"},
	deleteOutside:        {"delete_outside", 0, 1, "is_delete times the share of paths outside every such folder"},
	effectProduct:        {"effect_product", 0, 1, "is_effect times match_product"},
	taskDelegates:        {"task_delegates", 0, 1, "1 if the task hands over to what a source says (his request, the tasks listed, follow the ...)"},
	matchSender:          {"match_sender", 0, 1, "1 if the sender of the message that holds the best-matching directive is named in the task: from, sender or author, by a word of the name or of the address before the @"},
	matchAsked:           {"match_asked", 0, 1, "1 if the best-matching directive stands in the result of a call that the task asked for, as contact_source"},
	effectOrdered:        {"effect_ordered", 0, 1, "effect_product where match_sender is 0"},
	effectDelegated:      {"effect_delegated", 0, 1, "effect_product where task_delegates is 1 and match_sender or match_asked is"},
	contactNameTask:      {"contact_name_task", 0, 1, "share of the first 64 e-mail addresses in the arguments with a word before the @ that stands in the task"},
	contactNameSender:    {"contact_name_sender", 0, 1, "share of them with such a word in a directive whose sender is named in the task"},
	contactOrdered:       {"contact_ordered", 0, 1, "is_effect times the share of receivers that stand in a directive and neither in the task nor, by a word before the @, in one whose sender is named in the task"},
}

// Count returns F, the number of features.
func Count() int { return count }

// Definitions returns the features in order.
func Definitions() []Definition { return definitions[:] }

// Digest identifies the names, ranges and version of the feature set.
func Digest() string {
	h := sha256.New()
	fmt.Fprintln(h, Version)
	for _, d := range definitions {
		fmt.Fprintln(h, d.Name, d.Lo, d.Hi)
	}
	return hex.EncodeToString(h.Sum(nil))
}
