// Package tokenize turns text into the token ids of a language model, as the
// reference implementation (Hugging Face tokenizers, Rust) does, in pure Go.
//
// [Parse] reads a tokenizer.json: WordPiece as in BERT, MiniLM, BGE and E5, or
// byte-level BPE as in GPT-2, RoBERTa, Llama 3 and Qwen. [FromVocabulary] makes a
// WordPiece tokenizer from a list of tokens.
//
//	data, err := os.ReadFile("model/tokenizer.json")
//	t, err := tokenize.Parse(data)
//	ids := t.Append(nil, "Send the report.")            // without special tokens
//	ids = t.AppendWithSpecial(ids[:0], "Send the report.") // [CLS] ... [SEP]
//	text := t.Decode(ids)
//
// A [Tokenizer] is safe for concurrent use and allocates nothing once warm. The
// ids are those of the reference with padding and truncation off and special
// tokens in the text left as text (encode_special_tokens), so that what a tool
// returns cannot pass for the end of a sequence or the begin of a turn.
//
// What a file asks for and this package does not do is an error that wraps
// [ErrUnsupported] and names the field. docs/reference/tokenizers.md lists what
// is read, and how exactness is tested.
package tokenize
