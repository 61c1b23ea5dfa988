package guard

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dreamguard/dreamguard/embed/features"
)

// featureSentence says what a call feature is, for a person.
func featureSentence(d features.Definition, value float64) string {
	text, ok := sentences[d.Name]
	if !ok { // a feature that is newer than the list
		return fmt.Sprintf("%s is %s: %s", d.Name, strconv.FormatFloat(value, 'g', 3, 64), d.Doc)
	}
	if is, not, two := strings.Cut(text, " | "); two {
		steps, aged := math.Round(1/value), strings.Contains(is, "#") // 1 for the last result; a value of 0 is never
		switch {
		case aged && value > 0 && steps == 1:
			return strings.ReplaceAll(is, "#", "1 step")
		case aged && value > 0:
			return strings.ReplaceAll(is, "#", fmt.Sprintf("%.0f steps", steps))
		case value >= 0.5:
			return is
		}
		return not
	}
	number := fmt.Sprintf("%.0f %%", 100*value)
	switch {
	case strings.HasPrefix(d.Doc, "log1p"):
		number = fmt.Sprintf("%.0f", math.Expm1(value))
	case d.Hi > 1:
		number = strconv.FormatFloat(value, 'g', 3, 64)
	}
	return strings.ReplaceAll(text, "#", number)
}

// sentences by feature. # is the value: a share in per cent, a count, a score, or,
// where there are two texts, an age in steps. Two texts are for yes and no. An order is a sentence of a result, or of text that
// was there before the run, which tells the agent to do something.
var sentences = map[string]string{
	"arg_task":               "# of the arguments' words come from the task",
	"arg_action":             "# of the arguments' words come from the agent's own calls",
	"arg_result":             "# of the arguments' words come from plain text of results",
	"arg_directive":          "# of the arguments' words come from an order in a result",
	"arg_context":            "# of the arguments' words come from text planted before the run",
	"arg_nowhere":            "# of the arguments' words were never seen before",
	"arg_untrusted":          "# of the arguments' words come from orders in results or planted text",
	"tool_task":              "# of the words in the tool's name come from the task",
	"tool_action":            "# of the words in the tool's name come from the agent's own calls",
	"tool_result":            "# of the words in the tool's name come from plain text of results",
	"tool_directive":         "# of the words in the tool's name come from an order in a result",
	"tool_context":           "# of the words in the tool's name come from planted text",
	"tool_nowhere":           "# of the words in the tool's name were never seen before",
	"tool_untrusted":         "# of the words in the tool's name come from orders in results or planted text",
	"call_task":              "# of the call's words come from the task",
	"call_action":            "# of the call's words come from the agent's own calls",
	"call_result":            "# of the call's words come from plain text of results",
	"call_directive":         "# of the call's words come from an order in a result",
	"call_context":           "# of the call's words come from planted text",
	"call_nowhere":           "# of the call's words were never seen before",
	"call_untrusted":         "# of the call's words come from orders in results or planted text",
	"leaf_untrusted":         "one argument comes to # from orders in results or planted text",
	"leaf_nowhere":           "one argument comes to # from nowhere",
	"mass_untrusted":         "the arguments carry a weight of # in words from orders in results or planted text",
	"mass_result":            "the arguments carry a weight of # in words from plain results",
	"match_best":             "the call matches the nearest order in a result to #",
	"match_call":             "# of the call stands in the nearest order in a result",
	"match_directive":        "# of the nearest order in a result stands in the call",
	"match_new":              "the call matches an order in a result to #, words of the task and of earlier calls left out",
	"match_off_task":         "# of the nearest order in a result has nothing to do with the task",
	"match_product":          "the call does what an order in a result says that is foreign to the task, to #",
	"match_score":            "the nearest order in a result is as pressing as # of 6",
	"match_age":              "the nearest order in a result was seen # ago | no order was seen before",
	"match_override":         "the nearest order says to disregard other instructions | the nearest order does not say to disregard other instructions",
	"match_planted":          "the nearest order was planted before the run | the nearest order was not planted before the run",
	"match_reach":            "# of what an order in a result wants beyond the task stands in the call",
	"match_seen":             "# of the call beyond the task stands in one order in a result",
	"match_sender":           "the nearest order is from somebody whom the task names | the nearest order is not from somebody whom the task names",
	"match_asked":            "the nearest order stands in a result that the task asked for | the nearest order does not stand in a result that the task asked for",
	"value_task":             "# of the exact values in the arguments stand in the task",
	"value_result":           "# of the exact values in the arguments stand only in plain text of results",
	"value_directive":        "# of the exact values in the arguments stand in an order and not in the task",
	"value_nowhere":          "# of the exact values in the arguments stand nowhere",
	"value_any_task":         "an exact value in the arguments stands in the task | no exact value in the arguments stands in the task",
	"value_any_result":       "an exact value in the arguments stands only in plain text of results | no exact value in the arguments stands only in plain text of results",
	"value_any_directive":    "an exact value in the arguments stands in an order and not in the task | no exact value in the arguments stands in an order only",
	"value_any_nowhere":      "an exact value in the arguments stands nowhere | every exact value in the arguments was seen before",
	"value_count":            "the arguments hold # exact values: addresses, ids, paths, amounts",
	"contact_task":           "# of the receivers stand in the task",
	"contact_result":         "# of the receivers stand only in plain text of results",
	"contact_directive":      "# of the receivers stand in an order and not in the task",
	"contact_nowhere":        "# of the receivers stand nowhere",
	"contact_any_task":       "a receiver stands in the task | no receiver stands in the task",
	"contact_any_result":     "a receiver stands only in plain text of results | no receiver stands only in plain text of results",
	"contact_any_directive":  "a receiver stands in an order and not in the task | no receiver stands in an order only",
	"contact_any_nowhere":    "a receiver stands nowhere | no receiver is new",
	"contact_count":          "receivers of the call: #",
	"contact_source":         "# of the receivers stand in text that the task asked for",
	"contact_name_task":      "# of the addresses have a name that stands in the task",
	"contact_name_sender":    "# of the addresses have a name that stands in an order of somebody whom the task names",
	"contact_ordered":        "the call acts, and # of its receivers come from an order of somebody whom the task does not name",
	"is_read":                "the tool reads | the tool does not read",
	"is_send":                "the tool sends or publishes | the tool does not send",
	"is_pay":                 "the tool pays or orders | the tool does not pay",
	"is_write":               "the tool writes | the tool does not write",
	"is_delete":              "the tool deletes | the tool does not delete",
	"is_auth":                "the tool grants access or uses a credential | the tool grants no access",
	"is_exec":                "the tool runs code | the tool runs no code",
	"is_effect":              "the call changes something outside the agent | the call changes nothing outside the agent",
	"tool_used":              "the tool was used # times before",
	"tool_same":              "the last call used the same tool | the last call used another tool",
	"tool_named_task":        "# of the tool's name stands in the task",
	"tool_named_directive":   "# of the tool's name stands in one order in a result",
	"tool_literal_task":      "the task names the tool | the task does not name the tool",
	"tool_literal_directive": "an order in a result names the tool | no order in a result names the tool",
	"tool_literal_context":   "planted text names the tool | no planted text names the tool",
	"tool_new_directive":     "# of the tool's name stands in an order in a result, and in nothing else",
	"tool_known":             "the tool is in the catalogue | the tool is not in the catalogue",
	"tool_like_task":         "# of the tool's description stands in the task",
	"tool_like_directive":    "# of the tool's description stands in one order in a result",
	"verb_in_task":           "the task asks for an action of this kind | the task asks for no action of this kind",
	"verb_in_directive":      "an order in a result asked # ago for an action of this kind | no order in a result asks for an action of this kind",
	"verb_in_new":            "an order in a result, and not the task, asked # ago for an action of this kind | no order in a result asks for such an action beyond the task",
	"arg_destructive":        "the arguments hold a destructive command that the task does not | the arguments hold no destructive command beyond the task",
	"arg_secret":             "the arguments name a secret that the task does not | the arguments name no secret beyond the task",
	"last_score":             "the most pressing order in the last result scores # of 6",
	"last_count":             "the last result holds # orders",
	"max_score":              "the most pressing order in any result scores # of 6",
	"total_count":            "the results so far hold # orders",
	"since_directive":        "an order in a result was seen # ago | no order in a result was seen",
	"last_override":          "the last result says to disregard other instructions | the last result does not say to disregard other instructions",
	"any_override":           "some result said to disregard other instructions | no result said to disregard other instructions",
	"tail_override":          "a user turn ends in an order that overrides the rest | no user turn ends in an order that overrides the rest",
	"has_context":            "there was text before the run that the user did not write | there was no text before the run",
	"task_delegates":         "the task hands over to what a source says | the task does not hand over to what a source says",
	"task_length":            "the task has # bytes",
	"last_length":            "the last result has # bytes",
	"arg_length":             "the arguments have # bytes",
	"step":                   "# steps went before",
	"last_error":             "the last call failed | the last call did not fail",
	"new_after_directive":    "the tool is used for the first time, right after an order in a result | the tool is not new right after an order",
	"is_message":             "the action is a message | the action is a tool call",
	"sensitive_reads":        "# sensitive results were read",
	"taint_share":            "# of the exact values were read from a sensitive place and do not stand in the task",
	"taint_leaves":           "a value from a sensitive place leaves with the call | no value from a sensitive place leaves with the call",
	"taint_to_stranger":      "a value from a sensitive place goes to somebody whom the task does not name | no value from a sensitive place goes to somebody whom the task does not name",
	"taint_any":              "an exact value was read as a secret and does not stand in the task | no exact value was read as a secret",
	"effect_untrusted":       "the call acts, and # of its words come from orders in results or planted text",
	"effect_product":         "the call acts, and does what an order in a result says that is foreign to the task, to #",
	"effect_ordered":         "the call acts as an order says from somebody whom the task does not name, to #",
	"effect_delegated":       "the call acts as an order says that the task hands over to, to #",
	"stranger_effect":        "the call acts, and # of its receivers do not stand in the task",
	"stranger_unsourced":     "the call acts, and # of its receivers stand neither in the task nor in text that it asked for",
	"delete_off_scope":       "the call deletes, and # of its exact values do not stand in the task",
	"delete_outside":         "the call deletes, and # of its paths lie outside what the task names",
	"auth_off_task":          "the call grants access, and # of its exact values do not stand in the task",
	"personal_labels":        "# lines of the arguments give a personal value",
	"personal_shapes":        "# values in the arguments look like personal ones and do not stand in the task",
	"personal_carried":       "a file in the arguments had personal values written to it | no file in the arguments is known to hold personal values",
	"personal_leaves":        "personal values leave with the call | no personal values leave with the call",
	"personal_stranger":      "personal values go to somebody whom the task does not name | no personal values go to somebody whom the task does not name",
	"domain_task":            "# of the addresses have a domain that stands in the task",
	"domain_seen":            "# of the addresses have a domain that stands in the task or in plain text of a result",
	"path_scope":             "# of the paths lie in what the task names",
}
