package formats_test

import (
	"fmt"
	"strings"

	"github.com/dreamguard/dreamguard/data"
	"github.com/dreamguard/dreamguard/data/formats"
)

func Example() {
	const chat = `[
		{"role": "user", "content": "Delete old.txt."},
		{"role": "assistant", "content": null, "tool_calls": [
			{"id": "1", "type": "function", "function": {"name": "delete_file", "arguments": "{\"path\": \"old.txt\"}"}}]},
		{"role": "tool", "tool_call_id": "1", "content": "ok"}
	]`
	f, err := formats.Detect([]byte(chat))
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := f.Import(strings.NewReader(chat), "chat.json", func(t *data.Trajectory) error {
		fmt.Println(t.ID, t.Label, t.Steps[0].Tool, t.Steps[0].Args, t.Steps[0].Result)
		return nil
	})
	fmt.Println(report.Format, report.Kept, err)
	// Output:
	// openai/chat/1 unknown delete_file {"path": "old.txt"} ok
	// openai 1 <nil>
}
