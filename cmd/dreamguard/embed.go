package main

import (
	"fmt"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/embed/cache"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) embedCommand() *cobra.Command {
	var (
		dir, shardText string
		o              pipeline.EmbedOptions
		asJSON         bool
	)
	cmd := &cobra.Command{
		Use:   "embed (--run DIR | --out DIR FILE...)",
		Short: "Embed the texts of the training sets, or of files",
		Long: `Embed fills the run's cache with the vectors of every text that training reads,
each text once, and counts the words that the call features are weighted by. With
--out it fills a cache of its own with every text of the files, JSON lines or Parquet
of trajectories, with the encoder of --config.

An interrupted embed goes on where it stopped. With --shard I/N it embeds one of N
parts of the texts; parts can be embedded at the same time, by several processes in
one folder or on several machines, whose folders --from then puts together. A final
embed --run without --shard finds nothing left to compute and finishes the stage.`,
		Example: `  dreamguard embed --run runs/p1
  dreamguard embed --run runs/p1 --shard 1/4
  dreamguard embed --config mine.yaml --out vectors runs/p1/data/train.jsonl.gz
  dreamguard embed --run runs/p1 --from vectors`,
	}
	config := configFlags(cmd, "quickstart")
	f := cmd.Flags()
	runFlag(cmd, &dir)
	f.StringVar(&o.Out, "out", "", "folder of the cache to fill from files")
	f.StringVar(&shardText, "shard", "", "embed the I-th of N parts only, as I/N")
	f.StringArrayVar(&o.Vectors, "from", nil, "cache folder whose vectors are taken over first; may be repeated")
	backendFlag(cmd, backendUsage)
	jsonFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		if shardText != "" {
			var err error
			if o.Shard, err = cache.ParseShard(shardText); err != nil {
				return usagef("embed: --shard %v", err)
			}
		}
		switch {
		case (dir != "") == (o.Out != ""):
			return usagef("embed: name either the run folder with --run DIR, or the folder of a cache with --out DIR and the files to embed")
		case dir != "" && len(files) > 0:
			return usagef("embed: --run embeds the run's own sets: leave out %s, or name a cache with --out", files[0])
		case dir != "" && (f.Changed("config") || f.Changed("set")):
			return usagef("embed: a run has its configuration: change it with dreamguard run --out %s --until embed", dir)
		case o.Out != "" && len(files) == 0:
			return usagef("embed: name the files to embed")
		}
		if dir != "" {
			return a.embedRun(cmd, dir, o, asJSON)
		}
		cfg, err := config()
		if err == nil {
			err = setBackend(cmd, &cfg)
		}
		if err != nil {
			return err
		}
		return a.embedFiles(cmd, cfg, files, o, asJSON)
	}
	return cmd
}

func (a *app) embedRun(cmd *cobra.Command, dir string, o pipeline.EmbedOptions, asJSON bool) error {
	opts := a.options("")
	opts.Vectors = o.Vectors
	run, err := openRun(dir, opts)
	if err == nil {
		run, err = onBackend(cmd, run, opts)
	}
	if err != nil {
		return err
	}
	if o.Shard.Count > 0 {
		stats, err := run.EmbedShard(cmd.Context(), o.Shard)
		if err != nil {
			return err
		}
		return a.showEmbedded(stats, asJSON)
	}
	before := run.Record("embed")
	if err := run.Embed(cmd.Context()); err != nil {
		return err
	}
	return a.showStage("embed", run.Record("embed"), run.Record("embed") == before, asJSON)
}

func (a *app) embedFiles(cmd *cobra.Command, cfg configs.Config, files []string, o pipeline.EmbedOptions, asJSON bool) error {
	o.Encoder, o.Backend, o.Files, o.Progress = cfg.Encoder, cfg.Backend, files, a.progress()
	stats, err := pipeline.EmbedFiles(cmd.Context(), o)
	if err != nil {
		return err
	}
	return a.showEmbedded(stats, asJSON)
}

func (a *app) showEmbedded(s pipeline.EmbedStats, asJSON bool) error {
	if asJSON {
		return a.printJSON(s)
	}
	w := &errWriter{w: a.stdout}
	fmt.Fprintf(w, "encoder   %v\n", s.Encoder)
	fmt.Fprintf(w, "shard     %s\n", s.Shard)
	fmt.Fprintf(w, "texts     %d, %d of them embedded now, %d known or repeated\n", s.Texts, s.Embedded, s.Hits)
	fmt.Fprintf(w, "segments  %d new\n", s.Segments)
	fmt.Fprintf(w, "vectors   %d in the cache\n", s.Vectors)
	return w.err
}
