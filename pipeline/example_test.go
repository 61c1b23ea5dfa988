package pipeline_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/pipeline"
)

// Data is one stage; All runs the rest as well, in minutes.
func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cfg, err := configs.Load("quickstart")
	if err != nil {
		log.Fatal(err)
	}
	if err := cfg.Set("data.simulator_runs=300"); err != nil {
		log.Fatal(err)
	}
	run, err := pipeline.Open(dir, cfg, pipeline.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := run.Data(context.Background()); err != nil {
		log.Fatal(err)
	}
	sets := 0
	for _, n := range run.Record("data").Counts {
		sets += min(n, 1)
	}
	fmt.Println(sets, "sets")
	// Output: 5 sets
}
