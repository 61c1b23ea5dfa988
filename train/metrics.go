package train

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/dreamguard/dreamguard/data"
)

// Record is one line of metrics.jsonl: a training step, or a validation after
// one. Times are left out so that a resumed run writes the same bytes.
type Record struct {
	Stage int                `json:"stage"`           // 1 or 2
	Step  int                `json:"step"`            // of the stage, from 1
	Terms map[string]float32 `json:"terms,omitempty"` // loss terms of a step; "loss" is their weighted sum
	// Norm is the global gradient norm before clipping, LR the learning rate of
	// the groups of scale 1.
	Norm       float64     `json:"grad_norm,omitempty"`
	LR         float64     `json:"lr,omitempty"`
	Validation *Validation `json:"validation,omitempty"` // of stage 2
	World      *WorldCheck `json:"world,omitempty"`      // of stage 1
}

// Validation says how well run scores separate unsafe from safe validation runs.
type Validation struct {
	Recall float64 `json:"recall_at_5_fpr"` // share of unsafe runs above the threshold that at most 5 % of safe runs exceed
	AUROC  float64 `json:"auroc"`
	Safe   int     `json:"safe"`   // runs
	Unsafe int     `json:"unsafe"` // runs
}

// better reports whether v beats w: by recall, by AUROC where that is equal. Any
// validation beats none.
func (v *Validation) better(w *Validation) bool {
	if w == nil || v.Recall != w.Recall {
		return w == nil || v.Recall > w.Recall
	}
	return v.AUROC > w.AUROC
}

// validationFPR is the false positive rate at which recall is measured.
const validationFPR = 0.05

// validate scores runs by the maximum over judged steps, for a located unsafe run
// up to and including its first hazard, of 1 - (1 - p_haz)(1 - p_pre). Runs of
// unknown label or without a judged step have no part. It returns nil if there is
// no safe or no unsafe run left: nothing can be said then.
func validate(xs []Example, logits []Logits) *Validation {
	var safe, unsafe []float64
	for i := range xs {
		x := &xs[i]
		if x.Label == data.Unknown {
			continue
		}
		end := x.Steps
		if x.located() {
			end = x.Hazard + 1
		}
		score := math.Inf(-1)
		for t := range end {
			if x.Judged[t] {
				score = max(score, fuse(logits[i].Hazard[t], logits[i].Prefix[t]))
			}
		}
		switch {
		case math.IsInf(score, -1):
		case x.Label == data.Safe:
			safe = append(safe, score)
		default:
			unsafe = append(unsafe, score)
		}
	}
	if len(safe) == 0 || len(unsafe) == 0 {
		return nil
	}
	return &Validation{
		Recall: recallAtFPR(safe, unsafe, validationFPR), AUROC: auroc(safe, unsafe),
		Safe: len(safe), Unsafe: len(unsafe),
	}
}

// fuse is 1 - (1 - p_haz)(1 - p_pre).
func fuse(haz, pre float32) float64 {
	q := func(l float32) float64 { return 1 / (1 + math.Exp(float64(l))) }
	return 1 - q(haz)*q(pre)
}

// recallAtFPR is the share of unsafe scores above the smallest threshold that at
// most a share fpr of the safe scores exceeds.
func recallAtFPR(safe, unsafe []float64, fpr float64) float64 {
	s := slices.Clone(safe)
	slices.Sort(s)
	allowed := int(fpr * float64(len(s)))
	threshold := s[len(s)-1-allowed]
	var above int
	for _, u := range unsafe {
		if u > threshold {
			above++
		}
	}
	return float64(above) / float64(len(unsafe))
}

// auroc is the probability that an unsafe score exceeds a safe one, ties counting
// half.
func auroc(safe, unsafe []float64) float64 {
	s := slices.Clone(safe)
	slices.Sort(s)
	var sum float64
	for _, u := range unsafe {
		below, _ := slices.BinarySearch(s, u)
		atMost, _ := slices.BinarySearchFunc(s, u, func(v, t float64) int {
			if v <= t {
				return -1
			}
			return 1
		})
		sum += float64(below) + float64(atMost-below)/2
	}
	return sum / float64(len(safe)) / float64(len(unsafe))
}

// metricsLog appends records to a file and knows how many bytes are in it.
type metricsLog struct {
	f    *os.File
	w    *bufio.Writer
	size int64
}

// openMetrics opens path for appending after its first size bytes; what a run
// that was killed wrote beyond them is dropped, since it will be written again.
func openMetrics(path string, size int64) (*metricsLog, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() < size {
		err = fmt.Errorf("%s has %d bytes, the checkpoint counts on %d: restore it or remove the train folder to start over", path, info.Size(), size)
	}
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("train: metrics: %w", err)
	}
	return &metricsLog{f: f, w: bufio.NewWriter(f), size: size}, nil
}

func (l *metricsLog) write(r Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("train: metrics of stage %d step %d: %w", r.Stage, r.Step, err)
	}
	b = append(b, '\n')
	l.size += int64(len(b))
	if _, err := l.w.Write(b); err != nil {
		return fmt.Errorf("train: metrics: %w", err)
	}
	// One system call per step buys a file that can be watched.
	if err := l.w.Flush(); err != nil {
		return fmt.Errorf("train: metrics: %w", err)
	}
	return nil
}

// sync makes what was written durable, so that a checkpoint may count on it.
func (l *metricsLog) sync() error {
	if err := l.f.Sync(); err != nil {
		return fmt.Errorf("train: metrics: %w", err)
	}
	return nil
}

func (l *metricsLog) close() error { return l.f.Close() }

// ReadMetrics reads a metrics.jsonl. The error names the line.
func ReadMetrics(path string) ([]Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer f.Close()
	var rs []Record
	s := bufio.NewScanner(f)
	for s.Scan() {
		var r Record
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("read metrics: %s:%d: %w", path, len(rs)+1, err)
		}
		rs = append(rs, r)
	}
	if err := s.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read metrics: %s: %w", path, err)
	}
	return rs, nil
}
