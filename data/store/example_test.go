package store_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/store"
)

func Example() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "runs.parquet")
	runs := []*data.Trajectory{{
		ID: "demo/1", Task: "Read my notes.", Label: data.Safe,
		Steps: []data.Step{{Type: data.ToolCall, Tool: "read_file", Args: `{"path":"notes.txt"}`}},
	}}
	if err := store.WriteAll(path, runs); err != nil {
		fmt.Println(err)
		return
	}
	r, err := store.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	for t, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.At(), t.ID, t.Label, t.Steps[0].Tool)
	}
	// Output: row 1 demo/1 safe read_file
}
