package pipeline

import (
	"reflect"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/data"
)

func TestParseLabels(t *testing.T) {
	three := 3
	want := map[string]runLabel{"a": {label: data.Safe}, "b": {label: data.Unsafe, hazard: &three}}
	for _, text := range []string{
		"{\"id\":\"a\",\"label\":0}\n{\"id\":\"b\",\"label\":1,\"first_hazard\":3}\n",
		"{\"id\":\"a\",\"label\":\"safe\",\"first_hazard\":null}\n{\"id\":\"b\",\"label\":\"unsafe\",\"first_hazard\":3}",
		"id,label,first_hazard\na,0,\nb,1,3\n",
		"\uFEFFa,Safe\n b, unsafe,3",
	} {
		got, err := parseLabels([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got, err := parseLabels([]byte(`{"a": 0, "id": 1}`)); err != nil || len(got) != 2 || got["id"].label != data.Unsafe {
		t.Errorf("an object of ids: %v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                           "empty",
		"a,0\na,1\n":                 "has a label already",
		"a,2\n":                      "want 0 or safe",
		"a\n":                        "want id,label",
		"a,0,3":                      "unsafe run",
		"a,1,-1":                     "index of a step",
		"a,1,x":                      "index of a step",
		",1":                         "id is empty",
		`{"id":"a","label":true}`:    "want 0 or safe",
		`{"id":1,"label":1}`:         "id:",
		`{"id":"a","label":1}{"id":`: "line 1: ",
		"\n{\"id\":\"a\",\"label\":1}\n\n{\"id\":":               "line 4: ",
		"{\"id\":\"a\",\"label\":1}\n{\"id\":\"b\",\"label\":3}": "line 2: run \"b\": label",
		"\nid,label\n\n\"a\nb\",0\nc,5\n":                        "line 6: run \"c\"",
		`{"id":"a","label":1,"first_hazard":1.5}`:                "first_hazard",
	} {
		if _, err := parseLabels([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseLabels(f *testing.F) {
	for _, s := range []string{"a,0\nb,1,3", `{"id":"a","label":0}`, `{"a":1}`, "", "\"a"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		labels, err := parseLabels(b)
		if err != nil {
			return
		}
		for id, l := range labels {
			if id == "" || l.label != data.Safe && l.label != data.Unsafe || l.hazard != nil && (*l.hazard < 0 || l.label != data.Unsafe) {
				t.Errorf("%q: %+v", id, l)
			}
		}
	})
}
