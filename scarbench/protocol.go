package scarbench

// The protocol of the benchmark.
const (
	MaxIterations   = 5   // answers of the agent in one run
	MaxOutputTokens = 512 // in one answer
	Temperature     = 0.7
	Repetitions     = 5
)
