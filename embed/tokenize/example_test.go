package tokenize_test

import (
	"fmt"

	"github.com/dreamguard/dreamguard/embed/tokenize"
)

func ExampleFromVocabulary() {
	t, err := tokenize.FromVocabulary([]string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "send", "##ing", "the", "report", "."}, true)
	if err != nil {
		panic(err)
	}
	ids := t.AppendWithSpecial(nil, "Sending THE report.")
	fmt.Println(ids)
	fmt.Println(t.Token(5))
	fmt.Println(t.Decode(ids))
	// Output:
	// [2 4 5 6 7 8 3]
	// ##ing
	// sending the report.
}

func ExampleParse() {
	_, err := tokenize.Parse([]byte(`{"version": "1.0", "model": {"type": "Unigram", "vocab": [["a", -1.5]]}}`))
	fmt.Println(err)
	// Output:
	// tokenizer.json is not supported: model.type: "Unigram"; WordPiece and byte-level BPE are
}
