package data

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// plain has Trajectory's fields without its methods.
type plain Trajectory

var known = func() map[string]bool {
	m := map[string]bool{"n_steps": true}
	t := reflect.TypeFor[plain]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "-" {
			m[name] = true
		}
	}
	return m
}()

// UnmarshalJSON reads one trajectory and keeps fields it does not know in
// Extra. It does not call Validate.
func (t *Trajectory) UnmarshalJSON(b []byte) error {
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	if raw, ok := all["n_steps"]; ok {
		var n int
		if err := json.Unmarshal(raw, &n); err != nil || n != len(p.Steps) {
			return &FieldError{"n_steps", fmt.Sprintf("is %.20s but there are %d steps: the line is damaged or was edited", raw, len(p.Steps))}
		}
	}
	for k, v := range all {
		if known[k] || bytes.Equal(v, []byte("null")) {
			continue
		}
		if p.Extra == nil {
			p.Extra = map[string]json.RawMessage{}
		}
		p.Extra[k] = bytes.Clone(v)
	}
	*t = Trajectory(p)
	return nil
}

// MarshalJSON writes one trajectory, Extra's keys after the known ones in
// sorted order, so that equal trajectories give equal bytes.
func (t Trajectory) MarshalJSON() ([]byte, error) {
	head, err := marshal(plain(t))
	if err != nil || len(t.Extra) == 0 {
		return head, err
	}
	extra := make(map[string]json.RawMessage, len(t.Extra))
	for k, v := range t.Extra {
		if !known[k] {
			extra[k] = v
		}
	}
	tail, err := marshal(extra)
	if err != nil || len(extra) == 0 {
		return head, err
	}
	out := append(head[:len(head)-1], ',')
	return append(out, tail[1:]...), nil
}

// marshal is json.Marshal without HTML escaping, which would bloat tool output.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}
