// Package static is the default text encoder: a table with one vector per word
// piece, distilled from a sentence encoder, and nothing else. It needs no
// matrix product, no C and no network, and takes some ten microseconds for
// a text of 500 characters.
//
//	enc, err := static.Open(shipped.FS) // or os.DirFS(dir) with an encoder.safetensors in it
//	dst := make([]float32, enc.ID().Dims)
//	err = enc.Encode(ctx, []string{"send the report to ann@example.com"}, dst)
//
// An [Encoder] cuts a text into word pieces with the table's own vocabulary,
// without regard to letter case and accents, adds up the vectors of the distinct
// pieces, each times the square root of how often it stands there, and scales
// the sum to unit length. What a word weighs in general is part of its vector.
// The order of words has no influence. Package distill makes the table.
//
// # File
//
// encoder.safetensors is a [Table] in the safetensors format, without regard to
// byte order and alignment of the machine:
//
//	rows        I8  [tokens, dims]  values of the vectors
//	scale       F32 [tokens]        the vector of token i is scale[i] * rows[i]
//	vocabulary  U8  [bytes]         the tokens in order, separated by newlines
//
// The header's metadata holds "format", which is [Format], and "manifest", the
// JSON of a [Manifest]: what the table was distilled from, how, on which
// corpus, and under which licence.
package static
