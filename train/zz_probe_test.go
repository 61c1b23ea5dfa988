//go:build xla && cgo

package train

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dreamguard/dreamguard/configs"
	"github.com/dreamguard/dreamguard/data"
)

func cpu() float64 {
	var u syscall.Rusage
	syscall.Getrusage(0, &u)
	return float64(u.Utime.Sec) + float64(u.Utime.Usec)/1e6 + float64(u.Stime.Sec) + float64(u.Stime.Usec)/1e6
}

func TestProbe(t *testing.T) {
	runtime.GC()
	be := os.Getenv("PB")
	cfg, dims := benchConfig()
	cfg.Backend = be
	if os.Getenv("PM") != "paper" {
		cfg.Model = configs.Model{Hidden: 96, Factors: 8, Classes: 8, Adapter: 96, HeadHidden: 64, UniformMix: 0.01, Latent: "probabilities"}
	}
	cfg.Train.Stage2.World = 0.1
	n, _ := strconv.Atoi(os.Getenv("PN"))
	for _, l := range strings.Split(os.Getenv("PT"), ",") {
		T, _ := strconv.Atoi(l)
		for _, st := range []stage{1, 2} {
			if s := os.Getenv("PS"); s != "" && s != fmt.Sprint(int(st)) {
				continue
			}
			cfg.Train.MaxSteps, cfg.Train.Buckets = T, []int{T}
			xs := testExamples(32, dims, func(x *Example) { x.Label, x.Hazard = data.Safe, -1 }, T)
			f, err := newFitter(cfg, dims, xs, nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := f.begin(st); err != nil {
				t.Fatal(err)
			}
			b, c := time.Now(), cpu()
			if _, err := f.step(); err != nil {
				t.Fatal(err)
			}
			wall, cp := time.Since(b).Seconds(), cpu()-c
			var ts []float64
			c = cpu()
			for range n {
				b := time.Now()
				if _, err := f.step(); err != nil {
					t.Fatal(err)
				}
				ts = append(ts, time.Since(b).Seconds()*1e3)
			}
			c = (cpu() - c) / float64(n) * 1e3
			sort.Float64s(ts)
			fmt.Printf("%s stage %d T %d: first %.1f s wall %.1f s cpu; step min %.1f median %.1f ms, cpu %.1f ms\n", be, st, T, wall, cp, ts[0], ts[len(ts)/2], c)
		}
	}
}
