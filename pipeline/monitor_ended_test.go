package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

func TestEndedRuns(t *testing.T) {
	e := newEndedRuns(10)
	for i := range 35 {
		e.add(fmt.Sprint(i), i%2 == 0, i == 34)
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	again := newEndedRuns(10)
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*endedRuns{&e, &again} {
		for i := range 35 {
			if e.has(fmt.Sprint(i)) != (i >= 25) {
				t.Errorf("run %d is known: %v; want the last ten", i, e.has(fmt.Sprint(i)))
			}
		}
		if len(e.order) > 21 {
			t.Errorf("%d hashes are kept", len(e.order))
		}
		if alerted, first := e.label("30"); !alerted || !first {
			t.Error("the first label of run 30")
		}
		if _, first := e.label("30"); first {
			t.Error("run 30 is labelled twice")
		}
		if _, first := e.label("34"); first {
			t.Error("run 34 had a label")
		}
		if _, first := e.label("3"); first {
			t.Error("run 3 is forgotten")
		}
	}
	for name, text := range map[string]string{
		"length": `"AAAA"`, "flags": `"AAAAAAAAAAAE"`, "no base64": `"!"`, "too many": string(mustJSON(make([]byte, 99))), "kind": `[1]`,
	} {
		e := newEndedRuns(10)
		if err := json.Unmarshal([]byte(text), &e); err == nil || (name == "length" || name == "flags" || name == "too many") && !errors.Is(err, ErrMonitor) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
