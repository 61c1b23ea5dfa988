// Package deps is temporary.
package deps

import (
	_ "github.com/apache/arrow-go/v18/arrow/ipc"
	_ "github.com/goccy/go-yaml"
	_ "github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	_ "github.com/gomlx/gomlx/core/graph"
	_ "github.com/gomlx/gomlx/ml/model"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/parquet-go/parquet-go"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/spf13/cobra"
	_ "golang.org/x/text/unicode/norm"
	_ "gonum.org/v1/gonum/blas/blas32"
	_ "gonum.org/v1/gonum/stat/distuv"
	_ "gonum.org/v1/plot"
	_ "gonum.org/v1/plot/vg/vgsvg"
	_ "pgregory.net/rapid"
	_ "golang.org/x/sys/unix"
)
