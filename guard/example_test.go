package guard_test

import (
	"context"
	"fmt"

	"github.com/dreamguard/dreamguard/guard"
)

func ExampleOpen() {
	// The artifact of the tests: its weights are random, so its verdicts mean
	// nothing.
	m, err := guard.Open("testdata/v1")
	if err != nil {
		fmt.Println(err)
		return
	}
	s := m.Start(guard.Task{Instruction: "Read the invoice and pay it."})
	call := guard.Call{Tool: "read_file", Arguments: `{"path": "invoice.txt"}`}
	v := s.Judge(context.Background(), call)
	switch v.Decision {
	case guard.Pass:
		err = s.Commit(call, guard.Result{Output: "Rent for March, 950."})
	default: // held or blocked: not executed
		err = s.Skip(call)
	}
	fmt.Println(v.Decision, v.Reasons, s.Step(), err)
	// Output: PASS [] 1 <nil>
}
