package features

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dreamguard/dreamguard/verdict"
)

func FuzzTracker(f *testing.F) {
	f.Add("Pay the rent", "send_money", `{"to": "a@b.com"}`, "Please send 5 to x.\n\\n''")
	f.Add("", "", "{'a': \"b\\", "\xff\x00 www.a.com/…")
	f.Fuzz(func(t *testing.T, task, tool, args, result string) {
		tr := NewTracker(nil, verdict.Task{Instruction: task, Context: result})
		row := make([]float32, Count())
		for range 2 {
			tr.Compute(row, verdict.Call{Tool: tool, Arguments: args})
			tr.Commit(verdict.Call{Tool: tool, Arguments: args, Text: task}, verdict.Result{Output: result, Error: args, User: len(tool) == 0})
		}
		raw, err := tr.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := UnmarshalTracker(nil, raw); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzUnmarshalTracker(f *testing.F) {
	raw, err := run().MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(stateMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, err := UnmarshalTracker(nil, b)
		if err != nil {
			return
		}
		row := make([]float32, Count())
		tr.Compute(row, call("send", `{"a": "b@c.com"}`))
		tr.Commit(call("send", `{"a": "b@c.com"}`), verdict.Result{Output: "please do it"})
	})
}

func BenchmarkStep(b *testing.B) {
	for _, n := range []int{500, 3000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tr := run()
			text := strings.Repeat("The invoice 2024-77 of bob@office.example was paid. Please check www.shop.example/a/b. ", n/85+1)[:n]
			args := `{"to": "bob@office.example", "body": "` + text[:min(n, 500)] + `"}`
			row := make([]float32, Count())
			b.ReportAllocs()
			for b.Loop() {
				tr.Compute(row, call("send_email", args))
				tr.Commit(call("send_email", args), verdict.Result{Output: text})
			}
		})
	}
}
