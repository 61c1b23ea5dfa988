// Package native runs Hugging Face's own Rust tokenizers behind the methods of
// [tokenize.Tokenizer]. It reads every tokenizer.json that they read, Unigram for
// example, and is what the pure Go package is held to in tests. It needs cgo, the
// build tag hftokenizers and the library that scripts/build-tokenizers.sh builds;
// without the tag the package is empty.
//
//	t, err := native.Parse(tokenizerJSON)
//	defer t.Close()
//	ids := t.AppendWithSpecial(nil, "Send the report.")
//
// Prefer package tokenize where it reads the file: it gives the same ids at ten
// times the speed and more, and needs no C. Only commands and tests may import
// this package.
//
// [tokenize.Tokenizer]: https://pkg.go.dev/github.com/dreamguard/dreamguard/embed/tokenize#Tokenizer
package native
