package env

import (
	"encoding/json"
	"fmt"
)

// param is one argument of a tool.
type param struct {
	name, kind, about string
	optional          bool
	enum              []string
	min, max          *float64
}

func text(name, about string) param { return param{name: name, kind: "string", about: about} }

func number(name, about string, lo, hi float64) param {
	return param{name: name, kind: "number", about: about, min: &lo, max: &hi}
}

func choice(name, about string, values ...string) param {
	return param{name: name, kind: "string", about: about, enum: values}
}

func optional(p param) param {
	p.optional = true
	return p
}

// object is the JSON Schema of arguments. Texts are not empty and at most 4,000
// characters long.
func object(params []param) json.RawMessage {
	properties, required := map[string]any{}, []string{}
	for _, p := range params {
		m := map[string]any{"type": p.kind, "description": p.about}
		switch {
		case p.enum != nil:
			m["enum"] = p.enum
		case p.kind == "string":
			m["minLength"], m["maxLength"] = 1, 4000
		case p.kind == "number":
			m["minimum"], m["maximum"] = *p.min, *p.max
		}
		properties[p.name] = m
		if !p.optional {
			required = append(required, p.name)
		}
	}
	b, err := json.Marshal(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"properties": properties, "required": required, "additionalProperties": false,
	})
	if err != nil { // plain maps of texts and numbers
		panic(err)
	}
	return b
}

// tool is any tool; its first parameter names the target.
func tool(name, about, of string, writes bool, run func(State, Args) (any, error), params ...param) *Tool {
	return &Tool{Name: name, Description: about, Schema: object(params), Target: params[0].name, Of: of, Writes: writes, run: run}
}

// look returns a record.
func look(name, about, of string, p param) *Tool {
	return tool(name, about, of, false, func(s State, a Args) (any, error) { return s.get(of, a.Text(p.name)) }, p)
}

// list returns the records of a collection.
func list(name, about, of string) *Tool {
	return &Tool{Name: name, Description: about, Schema: object(nil), Of: of, run: func(s State, _ Args) (any, error) {
		return map[string]any{of: s[of]}, nil
	}}
}

// set stores arguments in fields of the same name.
func set(name, about, of string, p param, fields ...param) *Tool {
	return tool(name, about, of, true, func(s State, a Args) (any, error) {
		r, err := s.get(of, a.Text(p.name))
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			if v, ok := a[f.name]; ok {
				r[f.name] = v
			}
		}
		return r, nil
	}, append([]param{p}, fields...)...)
}

// mark sets fields to fixed values.
func mark(name, about, of string, p param, values Record) *Tool {
	return tool(name, about, of, true, func(s State, a Args) (any, error) {
		r, err := s.get(of, a.Text(p.name))
		if err != nil {
			return nil, err
		}
		for k, v := range values {
			r[k] = v
		}
		return r, nil
	}, p)
}

// remove takes a record away.
func remove(name, about, of string, p param) *Tool {
	return tool(name, about, of, true, func(s State, a Args) (any, error) {
		id := a.Text(p.name)
		if _, err := s.get(of, id); err != nil {
			return nil, err
		}
		delete(s[of], id)
		return map[string]any{"deleted": id}, nil
	}, p)
}

// evidence is a step that leaves a record in another collection. What fails is
// told by the record itself: a field "fails" that holds the tool's name.
func evidence(name, about, of string, p param, in string, more ...param) *Tool {
	t := tool(name, about, of, false, func(s State, a Args) (any, error) {
		id := a.Text(p.name)
		r, err := s.get(of, id)
		if err != nil {
			return nil, err
		}
		if r["fails"] == name {
			return nil, fmt.Errorf("%s failed for %s", name, id)
		}
		e := Record{"active": true}
		for _, m := range more {
			if v, ok := a[m.name]; ok {
				e[m.name] = v
			}
		}
		s.put(in, id, e)
		return map[string]any{in: id, "record": r, "ok": true}, nil
	}, append([]param{p}, more...)...)
	t.Evidence = in
	return t
}

// copying is evidence that holds a copy, which goes stale.
func copying(name, about, of string, p param, in string) *Tool {
	t := tool(name, about, of, false, func(s State, a Args) (any, error) {
		id := a.Text(p.name)
		content := map[string]any{}
		for _, n := range s.names(of) {
			if Covers(id, n) {
				content[n] = cloneValue(map[string]any(s[of][n]))
				if s[of][n]["fails"] == name {
					return nil, fmt.Errorf("%s failed for %s", name, n)
				}
			}
		}
		if len(content) == 0 {
			return nil, fmt.Errorf("%s has no %q", of, id)
		}
		s.put(in, id, Record{"active": true, "of": of, "sums": sums(s, of, id), "content": content})
		return map[string]any{in: id, "items": len(content)}, nil
	}, p)
	t.Evidence, t.Keeps = in, true
	return t
}

// undo takes evidence back, and leaves a note that there was some.
func undo(name, about, of string, p param, in string) *Tool {
	return tool(name, about, of, false, func(s State, a Args) (any, error) {
		id := a.Text(p.name)
		r, err := s.get(in, id)
		if err != nil {
			return nil, err
		}
		r["active"] = false
		delete(r, "content")
		return map[string]any{"undone": id}, nil
	}, p)
}
