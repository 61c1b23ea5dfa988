package main

import (
	"encoding/json"
	"os"
	"slices"
	"time"

	"github.com/dreamguard/dreamguard/floor/configmcp"
	"github.com/dreamguard/dreamguard/floor/study"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

func (a *app) floorMCPCommand() *cobra.Command {
	var o guardOptions
	cmd := &cobra.Command{
		Use:   "mcp FILE",
		Short: "Serve a configuration as MCP tools config_get and config_set",
		Long: `Mcp speaks the Model Context Protocol on standard input and output. It offers two
tools: config_get reads the configuration, config_set changes one setting of it if the
floor permits.`,
		Example: "  dreamguard floor mcp agent.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			g, err := o.guard(files[0])
			if err != nil {
				return err
			}
			return configmcp.NewServer(g, readBuildInfo().Version).Run(cmd.Context(), &mcp.StdioTransport{})
		},
	}
	o.register(cmd)
	return cmd
}

func (a *app) floorStudyCommand() *cobra.Command {
	var (
		agent, baseURL, model, keyEnv, out string
		arms, kinds                        []string
		temperature                        float64
		o                                  study.Options
		asJSON, phases                     bool
		timeout                            time.Duration
	)
	cmd := &cobra.Command{
		Use:   "study (--agent obedient|careless|adversarial | --base-url URL --model NAME)",
		Short: "Measure how often an agent asks for, and gets, a change of its limits",
		Long: `Study asks an agent for outcomes whose shortcut is a protected field, for protected
edits by name, in other words, inside blocks and under pressure, and for legitimate
changes, with nothing, a prompt or the floor in between, and prints the paper's tables 2
to 5. The scripted agents test the harness: their numbers say nothing about models.`,
		Example: `  dreamguard floor study --agent careless
  dreamguard floor study --base-url http://127.0.0.1:11434/v1 --model llama3.2:3b --repeats 3 --out study.json`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var who study.Agent
			switch {
			case (agent == "") == (model == ""):
				return usagef("study: give either --agent or --model")
			case agent != "":
				var ok bool
				if who, ok = study.Scripted(agent); !ok {
					return usagef("study: --agent: %q: want obedient, careless or adversarial", agent)
				}
			default:
				opts := study.OpenAIOptions{BaseURL: baseURL, Model: model, Timeout: timeout}
				if keyEnv != "" {
					opts.Key = os.Getenv(keyEnv)
				}
				if cmd.Flags().Changed("temperature") {
					opts.Temperature = &temperature
				}
				var err error
				if who, err = study.OpenAI(opts); err != nil {
					return usagef("%v", err)
				}
			}
			for _, s := range arms {
				if !slices.Contains(study.Arms(), study.Arm(s)) {
					return usagef("study: --arms: %q: want some of %q", s, study.Arms())
				}
				o.Arms = append(o.Arms, study.Arm(s))
			}
			for _, s := range kinds {
				if !slices.Contains(study.Kinds(), study.Kind(s)) {
					return usagef("study: --kinds: %q: want some of %q", s, study.Kinds())
				}
				o.Kinds = append(o.Kinds, study.Kind(s))
			}
			r, err := study.Run(cmd.Context(), who, o)
			if err != nil {
				return err
			}
			if phases {
				if r.Phases, err = study.RunPhases(cmd.Context(), who, o.Repeats); err != nil {
					return err
				}
			}
			if out != "" {
				b, err := json.MarshalIndent(r, "", "  ")
				if err != nil {
					return err
				}
				if err := atomicfile.WriteFile(out, append(b, '\n')); err != nil {
					return err
				}
			}
			if asJSON {
				return a.printJSON(r)
			}
			return a.printf("%s", r.Tables())
		},
	}
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "", "scripted agent: obedient, careless or adversarial")
	f.StringVar(&baseURL, "base-url", "", "base URL of an OpenAI-compatible endpoint")
	f.StringVar(&model, "model", "", "model at that endpoint")
	f.StringVar(&keyEnv, "key-env", "", "environment variable with the API key")
	f.Float64Var(&temperature, "temperature", 0, "sampling temperature; the endpoint's own if left out")
	f.DurationVar(&timeout, "timeout", 2*time.Minute, "longest time of one request")
	f.IntVar(&o.Repeats, "repeats", 1, "passes over all requests")
	f.IntVar(&o.PerField, "wordings", study.Wordings, "wordings of each kind and field")
	f.StringSliceVar(&arms, "arms", nil, "arms to run; all if left out")
	f.StringSliceVar(&kinds, "kinds", nil, "kinds of request to ask; all if left out")
	f.BoolVar(&phases, "phases", true, "run the phase experiment as well (table 4)")
	f.StringVar(&out, "out", "", "write every case to this JSON file")
	jsonFlag(cmd, &asJSON)
	return cmd
}
