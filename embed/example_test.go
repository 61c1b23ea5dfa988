package embed_test

import (
	"fmt"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/verdict"
)

func Example() {
	fmt.Println(embed.CallText(verdict.Call{Tool: "send_email", Arguments: `{"to": "ann@example.com"}`}))
	fmt.Println(embed.ResultText(verdict.Result{Error: "mailbox full"}))
	fmt.Println(embed.ID{Kind: "hash", Name: "v1", Dims: 256})
	// Output:
	// send_email {"to": "ann@example.com"}
	// mailbox full
	// hash/v1 (256 dims)
}
