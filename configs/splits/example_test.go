package splits_test

import (
	"fmt"

	"github.com/dreamguard/dreamguard/configs/splits"
)

func Example() {
	suite := splits.AgentDyn().Suites["shopping"]
	fmt.Println(len(suite.Tasks.Train), len(suite.Tasks.Validation), len(suite.Tasks.Conformal), len(suite.Tasks.Test))
	fmt.Println(suite.Goals[1])
	// Output:
	// 11 3 3 3
	// [injection_task_1 injection_task_6]
}
