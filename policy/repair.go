package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dreamguard/dreamguard/verdict"
)

// repair looks for calls that bring about what is missing.
func (a *Auditor) repair(s *State, p *parsedCall, unmet []*compiled, depth int, above []verdict.Call) Decision {
	var plan []verdict.Call
	for _, r := range unmet {
		if a.satisfied(s.with(plan...), r, p) {
			continue // by a step for another rule
		}
		if depth >= maxRepair {
			return bottom(r, "%s needs %s first, and what that needs in turn has no end", p.call.Tool, stepText(r.Rule))
		}
		steps, why := a.steps(s, p, r, depth, append(slices.Clip(above), p.call), plan)
		if why != "" {
			return bottom(r, "%s needs %s first: %s", p.call.Tool, stepText(r.Rule), why)
		}
		if plan = append(plan, steps...); len(plan) > maxPlan {
			return bottom(r, "%s needs more than %d steps first", p.call.Tool, maxPlan)
		}
	}
	// The call itself, once more, in the state that the plan leaves.
	after := s.with(plan...)
	for _, r := range unmet {
		if !a.satisfied(after, r, p) {
			return bottom(r, "%s needs %s first, and a step for another constraint undoes it", p.call.Tool, stepText(r.Rule))
		}
	}
	return Decision{Outcome: Repair, Plan: plan, Rule: unmet[0].ID,
		Reason: fmt.Sprintf("%s needs %s first", p.call.Tool, stepText(unmet[0].Rule)) + quoteSource(unmet[0].Rule)}
}

func stepText(r Rule) string {
	if r.Requires.Text != "" {
		return fmt.Sprintf("%q", clipText(r.Requires.Text, 100))
	}
	return fmt.Sprintf("%q", strings.TrimSpace(r.Requires.Action+" "+r.Requires.Object))
}

// steps finds calls for one prerequisite, each audited itself, with what it needs
// in front of it.
func (a *Auditor) steps(s *State, p *parsedCall, r *compiled, depth int, above, plan []verdict.Call) (out []verdict.Call, why string) {
	why = "no tool is known that does it"
	for _, t := range a.candidates(r, p) {
		calls, missing := repairCalls(t, p)
		if missing != "" {
			why = fmt.Sprintf("%s is for it, and a value for its argument %q is not known", t.Name, missing)
			continue
		}
		out = out[:0:0]
		ok := true
		for _, c := range calls {
			if slices.Contains(above, c) {
				ok, why = false, "it needs itself"
				break
			}
			now := s.with(append(slices.Clip(plan), out...)...)
			d := a.audit(now, c, depth+1, above)
			switch d.Outcome {
			case Repair:
				out = append(append(out, d.Plan...), c)
			case Permit:
				out = append(out, c)
			default:
				ok, why = false, d.Reason
			}
			if !ok {
				break
			}
		}
		if !ok {
			continue
		}
		if !a.satisfied(s.with(append(slices.Clip(plan), out...)...), r, p) {
			why = fmt.Sprintf("%s would not act on the same target", t.Name)
			continue
		}
		return out, ""
	}
	return nil, why
}

// repairCalls writes the calls of a step for p's target: one, or one for each
// value where the step takes a single one. missing names an argument without a
// known value.
func repairCalls(t *tool, p *parsedCall) (calls []verdict.Call, missing string) {
	var primaries []any
	if len(p.targets) > 0 {
		switch v := p.args[p.targets[0].name].(type) {
		case []any:
			primaries = v
		case nil:
		default:
			primaries = []any{v}
		}
	}
	if t.params == nil && len(t.Targets) == 0 {
		if len(p.targets) == 0 {
			return []verdict.Call{{Tool: t.Name, Arguments: "{}"}}, ""
		}
		return []verdict.Call{encode(t.Name, map[string]any{p.targets[0].name: p.args[p.targets[0].name]})}, ""
	}
	params := t.params
	if params == nil {
		for _, n := range t.Targets {
			params = append(params, param{name: n, required: true})
		}
	}
	args := map[string]any{}
	split := ""
	for _, x := range params {
		v, same := p.args[x.name]
		isTarget := slices.Contains(t.Targets, x.name)
		_, ours := t.Defaults[x.name]
		switch {
		case same && (isTarget || x.required):
		case isTarget && len(t.Targets) > 0 && t.Targets[0] == x.name && len(primaries) > 0 && !hasParam(params, p.targets[0].name):
			v = p.args[p.targets[0].name]
		case ours:
			v = t.Defaults[x.name]
		case x.fixed && x.required:
			v = x.value
		case !x.required:
			continue
		case x.kind == "string" && content[lastWord(x.name)]:
			v = fmt.Sprintf("%s %s", p.call.Tool, clipText(p.call.Arguments, 300))
		default:
			return nil, x.name
		}
		if list, ok := v.([]any); ok && x.kind != "array" && x.kind != "" {
			if split != "" || len(list) == 0 || len(list) > maxPlan {
				return nil, x.name
			}
			split = x.name
		} else if !ok && x.kind == "array" {
			v = []any{v}
		}
		args[x.name] = v
	}
	if split == "" {
		return []verdict.Call{encode(t.Name, args)}, ""
	}
	for _, v := range args[split].([]any) {
		one := map[string]any{}
		for k, x := range args {
			one[k] = x
		}
		one[split] = v
		calls = append(calls, encode(t.Name, one))
	}
	return calls, ""
}

func hasParam(list []param, name string) bool {
	return slices.ContainsFunc(list, func(x param) bool { return x.name == name })
}

func lastWord(name string) string {
	last := name
	splitWords(name, func(w string) { last = w })
	return last
}

func encode(tool string, args map[string]any) verdict.Call {
	b, err := json.Marshal(args) // sorted keys
	if err != nil {              // values of decoded JSON and of the catalogue: only a value that is none can fail
		b = []byte("{}")
	}
	return verdict.Call{Tool: tool, Arguments: string(b)}
}
