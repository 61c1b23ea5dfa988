// Package store reads and writes files of trajectories, one at a time, as JSON
// lines (plain or gzip) or Parquet. [Reader] is the way in, [Write] the way out.
//
//	r, err := store.Open("runs.parquet")     // looks at the content, not at the name
//	defer r.Close()
//	for t, err := range r.All() {
//		...
//	}
//	err = store.WriteAll("safe.jsonl.gz", safe) // looks at the name
//	n, err := store.Write("copy.parquet", r.All()) // one at a time
//
// Both forms hold the same: reading one and writing the other loses nothing,
// fields that DreamGuard does not know included. Every trajectory is validated
// on the way in and on the way out. An error names the file, the line (in a
// Parquet file the row) and the field; see [Error].
//
// Bounds: a line, or a row, of more than [lines.Max] bytes (64 MiB) is an error,
// so a small gzip file cannot unpack into all of memory; the pages of a Parquet
// file are held to it before they are unpacked. Text must be valid UTF-8 without
// NUL bytes between the values; a NUL inside a text ("\u0000") is kept.
package store
