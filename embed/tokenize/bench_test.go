package tokenize

import (
	"strings"
	"testing"
)

// benchText is 500 characters of what a tool returns.
var benchText = strings.Repeat(`{"from": "Ann Lee <ann@example.com>", "subject": "Quarterly report", "body": "Please review the attached figures before Friday's meeting."} `, 4)[:500]

func BenchmarkAppend(b *testing.B) {
	for _, name := range goldenNames {
		k := load(b, name)
		for _, text := range []struct{ name, text string }{
			{"ascii500", benchText},
			{"accents500", string([]rune(strings.Repeat("Der Bär aß süße Äpfel, naïve œuvre; съешь ещё булок 你好世界. ", 9))[:500])},
			{"prose100KB", goldenTexts(b)[len(goldenTexts(b))-6]},
		} {
			b.Run(name+"/"+text.name, func(b *testing.B) {
				var ids []int32
				b.SetBytes(int64(len(text.text)))
				b.ReportAllocs()
				for b.Loop() {
					ids = k.Append(ids[:0], text.text)
				}
				b.ReportMetric(float64(len(ids)), "tokens")
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	data := unzip(b, "minilm-tokenizer.json.gz")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFromVocabulary(b *testing.B) {
	tokens := load(b, "minilm").tokens
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromVocabulary(tokens, true); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProperties is what the first use of the package costs once.
func BenchmarkProperties(b *testing.B) {
	for b.Loop() {
		if _, err := readProperties(unicodeText); err != nil {
			b.Fatal(err)
		}
	}
}
