package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/embed"
	"github.com/dreamguard/dreamguard/embed/distill"
	"github.com/dreamguard/dreamguard/embed/hash"
	"github.com/dreamguard/dreamguard/embed/static"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) encoderCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "encoder",
		Short: "Make, measure and try static text encoders",
		Long: `Encoder makes static text encoders: tables of token vectors that a sentence
encoder, the teacher, is distilled into. One is built into this program.`,
		Example: `  dreamguard encoder cosine "pay the invoice" "transfer the money"
  dreamguard encoder distill --from minilm --corpus runs/p2/data/train.jsonl.gz --out encoder.safetensors`,
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return usagef("encoder: want distill, agree or cosine: see dreamguard encoder --help")
		},
	}
	cmd.AddCommand(a.distillCommand(), a.agreeCommand(), a.cosineCommand())
	return cmd
}

// teacherFlags add the flags that open a teacher, and return what they say.
func teacherFlags(cmd *cobra.Command) func() (pipeline.TeacherOptions, error) {
	var o pipeline.TeacherOptions
	cmd.Flags().StringVar(&o.From, "from", "", "Hugging Face folder of the teacher: config.json, tokenizer.json, weights")
	cmd.Flags().StringVar(&o.Cache, "cache", "", "folder that keeps the teacher's vectors, so that the next call goes on from there")
	backendFlag(cmd, "what to run the teacher on")
	return func() (pipeline.TeacherOptions, error) {
		if o.From == "" {
			return o, usagef("%s: name the teacher's folder with --from DIR", cmd.CommandPath())
		}
		var err error
		o.Backend, err = backendName(cmd)
		return o, err
	}
}

func (a *app) distillCommand() *cobra.Command {
	var (
		o      pipeline.DistillOptions
		out    string
		asJSON bool
	)
	fit := distill.Defaults(256)
	cmd := &cobra.Command{
		Use:   "distill --from DIR --corpus FILE --out FILE",
		Short: "Distil a sentence encoder into a table of token vectors",
		Long: `Distill runs each token of the teacher's vocabulary, and some thousand texts of the
corpus, through the teacher, and fits a table of token vectors to them. The teacher
needs an uncased WordPiece tokenizer. docs/explanation/encoder.md says what is fitted.

The corpus is files of trajectories. Give training sets only: what the table is
fitted on cannot tell how good it is.`,
		Example: `  dreamguard run --config protocol-p2 --data DIR --until data --out runs/p2
  dreamguard encoder distill --from minilm --corpus runs/p2/data/train.jsonl.gz --out encoder.safetensors`,
		Args: args(cobra.NoArgs),
	}
	teacher := teacherFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.Corpus, "corpus", nil, "file of trajectories; may be repeated")
	f.StringVar(&out, "out", "", "file to write")
	f.IntVar(&fit.Dims, "dims", fit.Dims, "vector length")
	f.IntVar(&o.Texts, "texts", 6000, "texts of each data set that the teacher encodes, at most; 0 = fit nothing, to compare with")
	f.Uint64Var(&o.Seed, "seed", 20260701, "of their draw")
	f.Float64Var(&fit.SIF, "sif", fit.SIF, "a of the token weight a/(a+p)")
	f.Float64Var(&fit.Ridge, "ridge", fit.Ridge, "penalty of the map to the teacher")
	f.Float64Var(&fit.Tokens, "tokens", fit.Tokens, "penalty of the corrections of single tokens; 0 = no corrections")
	f.StringVar(&o.Name, "name", "", "name of the encoder (default: made of the source and the dimensions)")
	f.StringVar(&o.Source, "source", "", "the teacher as its publisher calls it (default: the name of its folder)")
	f.StringVar(&o.Licence.SPDX, "licence", "", "licence of the teacher, for example Apache-2.0")
	f.StringVar(&o.Licence.Notice, "notice", "", "whom that licence asks to name")
	jsonFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		switch o.Teacher, err = teacher(); {
		case err != nil:
			return err
		case len(o.Corpus) == 0:
			return usagef("encoder distill: name files of trajectories with --corpus FILE")
		case out == "":
			return usagef("encoder distill: name the file to write with --out FILE")
		case o.Texts < 0:
			return usagef("encoder distill: --texts %d: want 0 or more", o.Texts)
		}
		o.Fit, o.Progress = fit, a.progress()
		table, res, err := pipeline.Distill(cmd.Context(), o)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
			return err
		}
		if err := atomicfile.Write(out, func(w io.Writer) error { return table.Write(w) }); err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(struct {
				Path       string          `json:"path"`
				Manifest   static.Manifest `json:"manifest"`
				Iterations int             `json:"iterations"`
				Residual   float64         `json:"residual"`
				Kept       float64         `json:"kept"`
				Corrected  int             `json:"corrected"`
			}{out, table.Manifest, res.Iterations, res.Residual, res.Kept, res.Corrected})
		}
		t := a.table()
		t.row("encoder", out)
		encoderRows(t, &table.Manifest)
		t.row("fit", fmt.Sprintf("%d iterations to a residual of %.1e", res.Iterations, res.Residual))
		t.row("tokens corrected", fmt.Sprint(res.Corrected))
		t.row("squared length kept", fmt.Sprintf("%.4f", res.Kept))
		return t.flush()
	}
	return cmd
}

// encoderInfo is what inspect --json prints of a static encoder.
type encoderInfo struct {
	Path     string          `json:"path"`
	ID       embed.ID        `json:"id"`
	Manifest static.Manifest `json:"manifest"`
}

func (a *app) showEncoder(path string, enc *static.Encoder, asJSON bool) error {
	out := encoderInfo{path, enc.ID(), enc.Table().Manifest}
	if asJSON {
		return a.printJSON(out)
	}
	t := a.table()
	t.row("encoder", path)
	t.row("digest", out.ID.Digest)
	encoderRows(t, &out.Manifest)
	return t.flush()
}

// encoderRows shows where a table comes from.
func encoderRows(t *table, m *static.Manifest) {
	t.row("name", m.Name)
	t.row("table", fmt.Sprintf("%d tokens, %d dimensions", m.Tokens, m.Dims))
	t.row("distilled from", m.Source.Name)
	t.row("weights sha256", m.Source.Weights)
	t.row("tokenizer sha256", m.Source.Tokenizer)
	t.row("licence", m.Licence.SPDX)
	if m.Licence.Notice != "" {
		t.row("notice", m.Licence.Notice)
	}
	for _, f := range m.Corpus.Files {
		t.row("corpus", fmt.Sprintf("%s, %d runs, sha256 %s", f.Name, f.Runs, f.Digest))
	}
	t.row("texts", fmt.Sprintf("%d distinct, %d tokens; %d of them fitted", m.Corpus.Texts, m.Corpus.Tokens, m.Corpus.Fitted))
	r := m.Recipe
	t.row("recipe", fmt.Sprintf("version %d, sif %g, ridge %g, tokens %g, seed %d", r.Version, r.SIF, r.Ridge, r.Tokens, r.Seed))
}

func (a *app) agreeCommand() *cobra.Command {
	var (
		o      pipeline.AgreeOptions
		file   string
		hashed bool
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "agree --from DIR FILE...",
		Short: "Measure how far a static encoder agrees with its teacher",
		Long: `Agree draws pairs of texts from files of trajectories, in the form in which the
guard encodes them, and prints the correlation of the cosines that the static
encoder and the teacher give to them: for two texts of one run, of two tasks of one
data set, and of two data sets. The interval is one of 95 %.`,
		Example: `  dreamguard encoder agree --from minilm runs/p2/data/test-agentdyn.jsonl.gz
  dreamguard encoder agree --from minilm --encoder my.safetensors --without ids.txt runs.jsonl.gz`,
		Args: args(cobra.MinimumNArgs(1)),
	}
	teacher := teacherFlags(cmd)
	cmd.Flags().StringVar(&file, "encoder", "", "file or folder of the static encoder (default: the built-in one)")
	cmd.Flags().BoolVar(&hashed, "hash", false, "measure the hash encoder of 256 dimensions instead, to compare with")
	cmd.Flags().StringVar(&o.Without, "without", "", "file of ids of runs to leave out, one per line")
	cmd.Flags().IntVar(&o.Pairs, "pairs", 400, "pairs of each kind")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 20260701, "of their draw")
	jsonFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		var err error
		if o.Teacher, err = teacher(); err != nil {
			return err
		}
		switch {
		case o.Pairs < 4:
			return usagef("encoder agree: --pairs %d: want 4 or more", o.Pairs)
		case hashed && file != "":
			return usagef("encoder agree: --hash and --encoder name two encoders: give one of them")
		}
		var enc embed.Encoder = hash.New(256)
		if !hashed {
			if enc, err = pipeline.OpenStatic(file); err != nil {
				return err
			}
		}
		o.Encoder, o.Runs, o.Progress = enc, files, a.progress()
		rows, err := pipeline.Agree(cmd.Context(), o)
		if err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(struct {
				Encoder   embed.ID            `json:"encoder"`
				Files     []string            `json:"files"`
				Seed      uint64              `json:"seed"`
				Agreement []distill.Agreement `json:"agreement"`
			}{enc.ID(), files, o.Seed, rows})
		}
		t := a.table()
		t.row("pairs", "n", "Spearman", "interval", "Pearson")
		for _, r := range rows {
			name := string(r.Kind)
			if name == "" {
				name = "all"
			}
			t.row(name, fmt.Sprint(r.Pairs), fmt.Sprintf("%.3f", r.Spearman), fmt.Sprintf("%.3f-%.3f", r.Low, r.High), fmt.Sprintf("%.3f", r.Pearson))
		}
		return t.flush()
	}
	return cmd
}

func (a *app) cosineCommand() *cobra.Command {
	var (
		file   string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "cosine TEXT TEXT...",
		Short: "Print how near texts are to each other for a static encoder",
		Example: `  dreamguard encoder cosine "pay the invoice" "transfer the money" "delete the backup"
  dreamguard encoder cosine --encoder my.safetensors "read a file" "open a document"`,
		Args: args(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, texts []string) error {
			enc, err := pipeline.OpenStatic(file)
			if err != nil {
				return err
			}
			cosines, err := distill.Cosines(cmd.Context(), enc, texts)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(struct {
					Encoder embed.ID    `json:"encoder"`
					Texts   []string    `json:"texts"`
					Cosines [][]float64 `json:"cosines"`
				}{enc.ID(), texts, cosines})
			}
			t := a.table()
			for i, row := range cosines {
				var cells []string
				for _, x := range row {
					cells = append(cells, fmt.Sprintf("%6.3f", x))
				}
				t.row(append(cells, fmt.Sprintf("%.60q", texts[i]))...)
			}
			return t.flush()
		},
	}
	cmd.Flags().StringVar(&file, "encoder", "", "file or folder of the static encoder (default: the built-in one)")
	jsonFlag(cmd, &asJSON)
	return cmd
}
