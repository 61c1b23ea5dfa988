package cache_test

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/embed/hash"
)

func Example() {
	dir, err := os.MkdirTemp("", "cache")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	enc := hash.New(64)
	c, err := cache.Open(dir, enc.ID())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	texts := []string{"read the report", "send it to ann", "read the report"}
	stats, err := c.Fill(context.Background(), enc, cache.Seq(slices.Values(texts)), cache.Options{})
	fmt.Printf("%+v %v\n", stats, err)
	v, ok := c.Get("send it to ann")
	fmt.Println(len(v), ok)
	// Output:
	// {Texts:3 Hits:1 Embedded:2 Segments:1} <nil>
	// 64 true
}
