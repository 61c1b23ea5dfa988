package data_test

import (
	"encoding/json"
	"fmt"

	"github.com/dreamguard/dreamguard/data"
)

func Example() {
	line := []byte(`{"id":"demo/1","dataset":"demo","group":"notes","task":"Read my notes.",
		"steps":[{"type":"tool_call","tool":"read_file","args":"{\"path\":\"notes.txt\"}","result":"Buy milk."}],
		"label":0,"first_hazard":null}`)
	var t data.Trajectory
	if err := json.Unmarshal(line, &t); err != nil {
		fmt.Println(err)
		return
	}
	if err := t.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Label, t.Call(0).Tool, t.Result(0).Output)
	// Output: safe read_file Buy milk.
}
