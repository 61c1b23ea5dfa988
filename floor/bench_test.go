package floor

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// tenKB is a configuration of about 10 KB.
func tenKB(f Format) (before, after []byte) {
	var b strings.Builder
	switch f {
	case JSON, JSONC:
		b.WriteString(`{"server": {"enabled": false, "host": "127.0.0.1", "port": 7420}, "tools": {"policy": {"deny": ["exec(rm *)"]}, "untrusted": {"onMutate": "refuse"}}, "limits": {"maxSteps": 10}, "channels": [{"id": "tg", "allowFrom": ["@owner"]}], "schedules": [`)
		for i := range 80 {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "\n  {\"id\": \"job-%02d\", \"at\": \"09:%02d\", \"prompt\": \"Look at the queue number %d and tell me about it\", \"tools\": [\"exec\", \"web_fetch\"]}", i, i%60, i)
		}
		b.WriteString("]}\n")
	case YAML:
		b.WriteString("server: {enabled: false, host: 127.0.0.1, port: 7420}\ntools:\n  policy:\n    deny: ['exec(rm *)']\n  untrusted: {onMutate: refuse}\nlimits: {maxSteps: 10}\nchannels:\n  - id: tg\n    allowFrom: ['@owner']\nschedules:\n")
		for i := range 88 {
			fmt.Fprintf(&b, "  - id: job-%02d\n    at: '09:%02d'\n    prompt: Look at the queue number %d and tell me about it\n    tools: [exec, web_fetch]\n", i, i%60, i)
		}
	case TOML:
		b.WriteString("[server]\nenabled = false\nhost = \"127.0.0.1\"\nport = 7420\n[tools.policy]\ndeny = [\"exec(rm *)\"]\n[tools.untrusted]\nonMutate = \"refuse\"\n[limits]\nmaxSteps = 10\n[[channels]]\nid = \"tg\"\nallowFrom = [\"@owner\"]\n")
		for i := range 76 {
			fmt.Fprintf(&b, "[[schedules]]\nid = \"job-%02d\"\nat = \"09:%02d\"\nprompt = \"Look at the queue number %d and tell me about it\"\ntools = [\"exec\", \"web_fetch\"]\n", i, i%60, i)
		}
	}
	before = []byte(b.String())
	return before, []byte(strings.Replace(b.String(), "queue number 40 ", "queue of 40 ", 1))
}

func benchmarkCheck(b *testing.B, c func(i int) Change) {
	f, err := New(DefaultRules())
	if err != nil {
		b.Fatal(err)
	}
	if d := f.Check(c(0)); d.Outcome != Permit {
		b.Fatal(d.Reason)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if f.Check(c(i)).Outcome != Permit {
			b.Fatal("refused")
		}
	}
}

// BenchmarkCheckPath is a write to one field of a 10 KB document that was seen
// before, as a tool that sets single fields makes it.
func BenchmarkCheckPath(b *testing.B) {
	for _, f := range []Format{JSON, JSONC, YAML, TOML} {
		before, _ := tenKB(f)
		b.Run(string(f), func(b *testing.B) {
			c := Write("limits.maxSteps", 60)
			c.Before, c.BeforeFormat = before, f
			benchmarkCheck(b, func(int) Change { return c })
		})
	}
}

// BenchmarkCheckDocument is a whole new document of 10 KB in which one field
// changed, another value each time, against a present one that was seen before.
func BenchmarkCheckDocument(b *testing.B) {
	for _, f := range []Format{JSON, JSONC, YAML, TOML} {
		before, after := tenKB(f)
		b.Run(string(f), func(b *testing.B) {
			b.SetBytes(int64(len(after)))
			at := bytes.Index(after, []byte("queue of 40 ")) + len("queue of ")
			next := bytes.Clone(after)
			benchmarkCheck(b, func(i int) Change {
				next[at], next[at+1] = byte('0'+i%10), byte('0'+i/10%10)
				return Document(f, before, next)
			})
		})
	}
}

// BenchmarkCheckRewritten is a whole new document of 10 KB that differs from its
// start to its end, so that all of it is parsed.
func BenchmarkCheckRewritten(b *testing.B) {
	for _, f := range []Format{JSON, JSONC, YAML, TOML} {
		before, after := tenKB(f)
		b.Run(string(f), func(b *testing.B) {
			b.SetBytes(int64(len(after)))
			next := bytes.ReplaceAll(after, []byte("queue number"), []byte("lists number"))
			at := bytes.Index(next, []byte("lists number 0 ")) + len("lists number ")
			benchmarkCheck(b, func(i int) Change {
				next[at] = byte('0' + i%10)
				copy(next[at-6:], fmt.Sprintf("%05d", i%100000))
				return Document(f, before, next)
			})
		})
	}
}
