package checkpoints_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/dreamguard/dreamguard/checkpoints"
	"github.com/dreamguard/dreamguard/internal/safetensors"
)

// A trainer that looks for a checkpoint first goes on where it was killed.
func Example() {
	dir, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const config, data = "digest of the settings", "digest of the runs"
	for range 2 {
		c, _, err := checkpoints.Load(dir, config, data)
		switch {
		case errors.Is(err, checkpoints.ErrNone):
			fmt.Println("a fresh start")
			c = &checkpoints.Checkpoint{Config: config, Data: data}
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println("on from step", c.Step, string(c.State))
		}
		c.Step += 100
		c.State = json.RawMessage(`{"best": 0.25}`)
		c.Tensors = []safetensors.Tensor{{Name: "w", Shape: []int{2}, Data: []float32{0.5, -1}}}
		if err := checkpoints.Save(dir, c); err != nil {
			log.Fatal(err)
		}
	}
	_, _, err = checkpoints.Load(dir, "other settings", data)
	fmt.Println(errors.Is(err, checkpoints.ErrMismatch))
	// Output:
	// a fresh start
	// on from step 100 {"best": 0.25}
	// true
}
