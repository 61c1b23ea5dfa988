// Package cache keeps the vectors of texts on disk. A [Cache] is a folder that
// belongs to one encoder; it is looked up by content, so a text that occurs in
// many trajectories, or in many runs, is embedded once.
//
//	c, err := cache.Open("runs/p1/embed", enc.ID())
//	if err != nil {
//		return err // another encoder's cache, a damaged segment, ...
//	}
//	defer c.Close()
//	if _, err := c.Fill(ctx, enc, cache.Seq(slices.Values(texts)), cache.Options{}); err != nil {
//		return err // what was embedded so far is kept
//	}
//	v, ok := c.Get(texts[0]) // v aliases the mapped file
//
// A corpus larger than memory is filled in from a sequence that reads it as it
// goes; [Options] restrict a Fill to one of several shards, which processes fill
// at the same time, in this folder or in others that [Cache.Merge] then takes over.
// In memory are 27 to 37 bytes per text in the cache, and one segment's texts and
// vectors: 144 MiB in all for a million texts and 256 dims.
//
// The folder holds
//
//	cache.json                    format version and the encoder's identity
//	seg-KEYS-CRC.arrow            one segment: an Arrow IPC file with a column
//	                              "key" (first 16 bytes of the text's sha256)
//	                              and a column "vector" (float32[dims])
//	.lock                         held, shared, by whoever writes a segment
//
// A segment is written once, under a temporary name, and never changed. Its name
// carries a digest of its keys and the CRC-32C of the whole file, so two
// processes never write different content under one name and a torn or damaged
// file is found when it is opened. Any Arrow reader can read a segment.
package cache
