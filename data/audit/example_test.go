package audit_test

import (
	"fmt"
	"os"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/audit"
)

func Example() {
	step := []data.Step{{Type: data.ToolCall, Tool: "read_file", Args: `{"path":"notes.txt"}`, Result: "Buy milk."}}
	train := []*data.Trajectory{{ID: "a", Task: "Read my notes.", Label: data.Safe, Steps: step}}
	test := []*data.Trajectory{{ID: "b", Task: "Read  my notes", Label: data.Safe, Steps: step}}
	r := audit.Duplicates(map[string][]*data.Trajectory{"train": train, "test": test})
	fmt.Println("test runs that stand in train too:", r.Of("test", "train").Exact)
	if err := audit.Render(os.Stdout, train[0]); err != nil {
		fmt.Println(err)
	}
	// Output:
	// test runs that stand in train too: 1
	// a
	//   label             safe
	//
	//     task: Read my notes.
	//
	// [0] tool_call read_file
	//     args: {"path":"notes.txt"}
	//     result: Buy milk.
}
