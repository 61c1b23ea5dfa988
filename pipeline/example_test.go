package pipeline_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

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

// One run, as an agent's log has it, is judged step by step.
func ExampleJudge() {
	dir, err := os.MkdirTemp("", "judge")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "chat.json")
	chat := `{"messages": [
		{"role": "user", "content": "What is on the agenda?"},
		{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "read_agenda", "arguments": "{}"}}]},
		{"role": "tool", "tool_call_id": "1", "content": "10:00 team meeting"},
		{"role": "assistant", "content": "A team meeting at 10."}
	]}`
	if err := os.WriteFile(file, []byte(chat), 0o666); err != nil {
		log.Fatal(err)
	}
	j, err := pipeline.Judge(context.Background(), pipeline.JudgeOptions{
		Artifact: "../guard/testdata/v1", // of a model that has learned nothing
		File:     file, Step: -1,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(j.Tools[j.Step], "is judged by a model:", j.Verdicts[j.Step].Scored)
	// Output: read_agenda is judged by a model: true
}
