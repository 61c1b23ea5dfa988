// Package distill makes the table of a static encoder (package static) from the
// vectors of a sentence encoder, the teacher. It is numeric code only: who calls
// it has run the teacher, reads the files and writes the table.
//
//	res, err := distill.Fit(ctx, distill.Input{
//		Tokens:  tokens,  // the teacher's output for each token of the vocabulary
//		Counts:  counts,  // how often each stands in the corpus
//		Texts:   texts,   // token ids of some thousand texts
//		Teacher: vectors, // what the teacher makes of those
//	}, distill.Defaults(256))
//	table := static.Table{Rows: res.Rows, Scale: res.Scale, ...}
//
// A static encoder gives a text the direction of
//
//	v = sum over its distinct tokens t of sqrt(n_t) u_t
//
// where n_t is how often t stands in it. [Fit] chooses the rows u_t in steps:
//
//  1. Frequency. The weight of a token is w_t = a / (a + p_t), p_t its share of
//     the corpus (smooth inverse frequency: Arora, Liang and Ma, A simple but
//     tough-to-beat baseline for sentence embeddings, ICLR 2017).
//
//  2. Map to the teacher. u_t = w_t (e_t W + d_t), with e_t the teacher's output
//     for the token alone. The matrix W and the corrections d_t of single tokens
//     minimise, over the texts,
//
//     sum |y - v/|v0||^2 + ridge |W|^2 + tokens |d|^2,
//
//     y being the teacher's vector and v0 what v is with W the identity and
//     d = 0. It is ridge regression, solved by conjugate gradients. A token that
//     stands in no text has d_t = 0 and is carried by W alone, so that words
//     that the corpus does not have are placed too. Without texts W is the
//     identity, which is good for nothing but to compare with.
//
//  3. Fewer dimensions. The rows are projected on their leading right singular
//     vectors (no mean is taken off: sums of rows must stay sums).
//
//  4. int8. Each row is rounded to 127 steps of its largest value.
//
// All is folded into the table, so that nothing of it costs anything at run time.
//
// [Agree] measures how well two encoders agree: the rank correlation of their
// cosines on pairs of texts, for pairs of the same run, of the same data set and
// of two data sets ([DrawPairs]).
package distill
