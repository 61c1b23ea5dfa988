// Package formats imports runs of agents from the formats in which they are
// found. A [Format] reads one of them; [Import] opens a file, finds out which it
// is, and hands on trajectories one at a time:
//
//	report, err := formats.Import("logs.jsonl.gz", "", func(t *data.Trajectory) error {
//		runs = append(runs, t)
//		return nil
//	})
//
// | name | holds |
// | --- | --- |
// | dreamguard | the project's own JSON lines or Parquet (data/store) |
// | agentdojo | run logs of AgentDojo and benchmarks on its framework |
// | assebench | raw JSON of ASSEBench, R-Judge and AgentHarm |
// | claude-code | session logs of Claude Code |
// | anthropic | messages with tool_use and tool_result blocks |
// | openai | chat messages with tool calls |
//
// Three rules hold for all of them. A label is taken where the source states it
// and is unknown otherwise; it is never guessed, and neither is where the hazard
// is. Nothing is lost silently: [Report] counts what was read, dropped and
// repaired, with the reason. A file that is not what it should be is an error
// that names the file, the line and the field; it is never half understood.
//
// Files may be gzip, one JSON document or JSON lines. They are read as a stream:
// one value (a run, or one message) is in memory at a time and may have up to
// 64 MiB. Texts are not cut.
package formats
