// Package hash is the embedded text encoder: hashed n-grams, no table, no
// weights, no I/O. It is what DreamGuard uses when nothing better is at hand, and
// what its tests use, since its vectors never change.
//
//	enc := hash.New(256)
//	dst := make([]float32, 256)
//	err := enc.Encode(ctx, []string{"send the report to ann@example.com"}, dst)
//
// A text becomes a bag of features: its words, its pairs of neighbouring words,
// and the runs of three and four characters within a word, the word's ends
// included. Function words are left out, and a pair reaches over them. Each
// feature adds weight * (1 + ln count), with a sign taken from its hash, to one
// of Dims buckets (Weinberger et al., Feature hashing for large scale multitask
// learning, ICML 2009), so that the inner product of two vectors estimates that
// of the two bags without bias. The vector is scaled to unit length.
//
// Two texts are near when they share words or word stems. They are not near for
// meaning the same in other words: that takes a learned encoder.
package hash
