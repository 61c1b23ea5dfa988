// Package remote gets vectors from a server that speaks OpenAI's embeddings
// protocol: POST {URL}/embeddings, as OpenAI, vLLM, llama.cpp, Ollama, TEI and
// many others offer it.
//
//	enc, err := remote.Open(ctx, remote.Options{
//		URL:    "http://localhost:8000/v1",
//		Model:  "BAAI/bge-m3",
//		KeyEnv: "EMBEDDINGS_KEY", // name of the variable that holds the key, "" for none
//	})
//	dst := make([]float32, enc.ID().Dims)
//	err = enc.Encode(ctx, []string{"send the report to ann@example.com"}, dst)
//
// Texts go out in batches, at most Concurrency at a time and RequestsPerMinute a
// minute. A request that fails in a way that may pass (no connection, no answer
// in time, an answer cut short, status 408, 409, 425, 429 or 5xx) is tried again
// after a growing pause, or after the one that the server asks for. Answers are
// not trusted: their size is bounded, every text must have exactly one vector of
// the right length, and a vector of zeros or with a value that is not finite is an
// error. Vectors are scaled to unit length here.
//
// # Identity
//
// A server can be given another model at any time, and nothing in the protocol
// tells. Open therefore has eight fixed texts embedded and makes a sketch of the
// answer: 224 bits, each the sign of a random projection, half of them of the
// vectors and half of the vectors less their mean. The digest of the [embed.ID]
// is 8 hexadecimal digits of a sha256 over the settings that move vectors (model
// name, dims, prefix, clipping) and the sketch in the other 56.
//
// Servers are not deterministic to the last bit, so [Encoder.As] compares with the
// identity that a model was trained with: settings exactly, the sketch up to
// [Tolerance] bits, and then takes that identity on. Each request of 16 texts or
// more also carries one of the fixed texts along, and the name of the model in
// every answer must be that in the first.
//
// What this can promise: another model, another pooling or another prompt on an
// honest server is found; unrelated vectors differ in 112 of 224 bits, give or take
// 7.5. What it cannot: tell a model from one whose vectors have a cosine of more
// than some 0.995 to its own, as arithmetic in 16 bits has (no bit differed for
// all-MiniLM-L6-v2; weights in 8 bits differed in 27 and are refused); notice that
// only some texts, for example long ones, are treated in another way; see through
// a server that lies; or make the vectors of two days the same bits. Those that a
// model is trained on are kept in the cache (package embed/cache).
package remote
