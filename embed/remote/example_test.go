package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/dreamguard/dreamguard/embed/remote"
)

func Example() {
	// Stands in for a server on this machine: its vectors count vowels.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		type entry struct {
			Index     int        `json:"index"`
			Embedding [5]float32 `json:"embedding"`
		}
		var data []entry
		for i, text := range request.Input {
			e := entry{Index: i}
			for _, c := range text {
				for j, vowel := range "aeiou" {
					if c == vowel {
						e.Embedding[j]++
					}
				}
			}
			e.Embedding[0]++ // no vector is all zeros
			data = append(data, e)
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"model": "vowels", "data": data})
	}))
	defer server.Close()

	enc, err := remote.Open(context.Background(), remote.Options{URL: server.URL + "/v1", Model: "vowels"})
	if err != nil {
		fmt.Println(err)
		return
	}
	dst := make([]float32, 2*enc.ID().Dims)
	if err := enc.Encode(context.Background(), []string{"send", "uu"}, dst); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(enc.ID())
	fmt.Printf("%.2f\n", dst)
	// Output:
	// remote/vowels (5 dims)
	// [0.71 0.71 0.00 0.00 0.00 0.45 0.00 0.00 0.00 0.89]
}
