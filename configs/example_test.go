package configs_test

import (
	"fmt"

	"github.com/dreamguard/dreamguard/configs"
)

func Example() {
	cfg, err := configs.Load("quickstart")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := cfg.Set("train.stage1.steps=500"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(cfg.Name, cfg.Train.Stage1.Steps, cfg.Validate())
	fmt.Println(cfg.Set("train.stage1.setps=500"))
	// Output:
	// quickstart 500 <nil>
	// train.stage1.setps: unknown key: did you mean train.stage1.steps?
}
