package main

import (
	"fmt"
	"strconv"

	"github.com/dreamguard/dreamguard/calib"
	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/oneline"
	"github.com/dreamguard/dreamguard/pipeline"
	"github.com/spf13/cobra"
)

func (a *app) calibrationCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "calibration",
		Short: "List the calibrations of an artifact, or put an earlier one back",
		Example: `  dreamguard calibration log --artifact runs/p1/artifact
  dreamguard calibration revert --artifact runs/p1/artifact`,
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return usagef("calibration: say log or revert: see dreamguard calibration --help")
		},
	}
	cmd.AddCommand(a.calibrationLogCommand(), a.calibrationRevertCommand())
	return cmd
}

func (a *app) calibrationLogCommand() *cobra.Command {
	var (
		dir    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "log --artifact DIR",
		Short:   "List every calibration that was in force, oldest first",
		Example: "  dreamguard calibration log --artifact runs/p1/artifact",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if dir == "" {
				return usagef("calibration log: name the artifact folder with --artifact DIR")
			}
			log, err := pipeline.CalibrationLog(dir)
			if err != nil {
				return err
			}
			rows := make([]calibrationRow, len(log))
			for i, e := range log {
				rows[i].HistoryEntry = e
				if c := e.Calibration; c != nil {
					rows[i].Thresholds, rows[i].Certificate = &c.Thresholds, &c.Certificate
				}
			}
			if asJSON {
				return a.printJSON(rows)
			}
			if len(rows) == 0 {
				return a.printf("the artifact is not calibrated\n")
			}
			t := a.table()
			t.row("no", "", "calibration", "date", "hold", "block", "false alarms", "runs")
			for _, r := range rows {
				mark := ""
				if r.Current {
					mark = "in force"
				}
				if r.Certificate == nil {
					t.row(strconv.Itoa(r.Number), mark, "unusable: "+oneline.Of(r.Problem, 100))
					continue
				}
				promise := fmt.Sprintf("at most %.4g %%", 100*r.Certificate.Alpha)
				switch {
				case r.Certificate.NoGuarantee || r.Certificate.Alpha == 0:
					promise = "no promise"
				case r.Certificate.Confidence > 0:
					promise += fmt.Sprintf(" with %.4g %% confidence", 100*r.Certificate.Confidence)
				}
				hold, block := r.Thresholds.Levels()
				t.row(strconv.Itoa(r.Number), mark, fmt.Sprintf("%.12s", r.Digest), oneline.Of(r.Certificate.Created, 20), calib.FormatLevel(hold), calib.FormatLevel(block), promise, strconv.Itoa(r.Certificate.N))
			}
			return t.flush()
		},
	}
	cmd.Flags().StringVar(&dir, "artifact", "", "artifact folder")
	jsonFlag(cmd, &asJSON)
	return cmd
}

type calibrationRow struct {
	pipeline.HistoryEntry
	Thresholds  *artifact.Thresholds  `json:"thresholds,omitempty"`
	Certificate *artifact.Certificate `json:"certificate,omitempty"`
}

func (a *app) calibrationRevertCommand() *cobra.Command {
	var (
		dir    string
		number int
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "revert --artifact DIR [--to NUMBER]",
		Short: "Put an earlier calibration in force again",
		Long: `Revert puts an earlier calibration in force again: the last one before the current,
or the one that --to names by its number in the log. The one it replaces is kept, so a
second revert undoes the first.`,
		Example: "  dreamguard calibration revert --artifact runs/p1/artifact --to 2",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case dir == "":
				return usagef("calibration revert: name the artifact folder with --artifact DIR")
			case cmd.Flags().Changed("to") && number < 1:
				return usagef("calibration revert: --to is %d: want a number of the log", number)
			}
			e, err := pipeline.RevertCalibration(dir, number)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(calibrationRow{e, &e.Calibration.Thresholds, &e.Calibration.Certificate})
			}
			return a.printf("calibration %.12s of %s is in force again\n", e.Digest, oneline.Of(e.Calibration.Certificate.Created, 20))
		},
	}
	cmd.Flags().StringVar(&dir, "artifact", "", "artifact folder")
	cmd.Flags().IntVar(&number, "to", 0, "number in the log; left out: the last one before the current")
	jsonFlag(cmd, &asJSON)
	return cmd
}
