// Package configs holds the typed configuration of a run: strict YAML, embedded
// presets, and --set overrides. Every leaf is documented on its field; an
// unknown key is an error with a suggestion.
//
//	cfg, err := configs.Load("protocol-p1")        // a preset, or the path of a YAML file
//	err = cfg.Set("train.stage1.steps=500")
//	err = cfg.Validate()
package configs

// Config is everything that determines a run. The same Config, data and seed
// give the same bytes on the same backend.
type Config struct {
	Name    string  `yaml:"name" json:"name"`       // preset name, or the user's own
	Seed    uint64  `yaml:"seed" json:"seed"`       // root of every random stream
	Data    Data    `yaml:"data" json:"data"`       // which trajectories, split how
	Encoder Encoder `yaml:"encoder" json:"encoder"` // frozen text encoder
	Model   Model   `yaml:"model" json:"model"`     // sizes
	Train   Train   `yaml:"train" json:"train"`
	Calib   Calib   `yaml:"calibrate" json:"calibrate"`
	Eval    Eval    `yaml:"eval" json:"eval"`
	Backend string  `yaml:"backend" json:"backend"` // go, xla:cpu or xla:cuda: what training and the transformer encoder run on
}

// Data chooses trajectories.
type Data struct {
	Protocol      string             `yaml:"protocol" json:"protocol"`             // p1, p2 or simulator
	Fold          int                `yaml:"fold" json:"fold"`                     // 0 to 4: which injection goals are held out for test
	LeaveOut      string             `yaml:"leave_out" json:"leave_out"`           // agentdyn suite left out of training, "" for none
	MaxRuns       int                `yaml:"max_runs" json:"max_runs"`             // cap per set, drawn by seed; 0 = all
	SimulatorRuns int                `yaml:"simulator_runs" json:"simulator_runs"` // simulated trajectories over all splits
	Weights       map[string]float64 `yaml:"weights" json:"weights"`               // training weight per dataset; 1 where not named
}

// Encoder names the frozen encoder (docs/reference/encoders.md). What is not for
// its kind is ignored.
type Encoder struct {
	Kind        string      `yaml:"kind" json:"kind"`     // hash, static, transformer or remote
	Dims        int         `yaml:"dims" json:"dims"`     // vector length D; 0 = what the encoder gives, which hash has no opinion on
	Path        string      `yaml:"path" json:"path"`     // folder; static: with encoder.safetensors, "" for the table in this build; transformer: of a Hugging Face model. In a file relative to it
	Prefix      string      `yaml:"prefix" json:"prefix"` // transformer, remote: put before every text, for example "query: "
	Transformer Transformer `yaml:"transformer" json:"transformer"`
	Remote      Remote      `yaml:"remote" json:"remote"`
}

// Transformer says what of a model is used.
type Transformer struct {
	Layer     int    `yaml:"layer" json:"layer"`           // output of the n-th block from 1; 0 = the last
	Pooling   string `yaml:"pooling" json:"pooling"`       // mean, last or cls; "" = as the folder says
	MaxTokens int    `yaml:"max_tokens" json:"max_tokens"` // longest sequence, special tokens included, longer texts go in windows; 0 = as the folder says
	Overlap   int    `yaml:"overlap" json:"overlap"`       // tokens that neighbouring windows share; 0 = max_tokens / 8, -1 = none
	Batch     int    `yaml:"batch" json:"batch"`           // sequences computed at a time; moves no vector
}

// Remote names an OpenAI-compatible embeddings server.
type Remote struct {
	URL               string  `yaml:"url" json:"url"`                                 // what comes before /embeddings, for example http://localhost:8000/v1
	Model             string  `yaml:"model" json:"model"`                             // as the server calls it
	KeyEnv            string  `yaml:"key_env" json:"key_env"`                         // name of the environment variable that holds the API key, "" for none
	SendDims          bool    `yaml:"send_dims" json:"send_dims"`                     // ask the server for vectors of encoder.dims values, which few models can give
	MaxBytes          int     `yaml:"max_bytes" json:"max_bytes"`                     // texts are clipped to so many bytes; 0 = as they are, some 6,000 at most
	Base64            bool    `yaml:"base64" json:"base64"`                           // ask for base64: a third of the bytes, where the server can
	Batch             int     `yaml:"batch" json:"batch"`                             // texts in one request
	Concurrency       int     `yaml:"concurrency" json:"concurrency"`                 // requests at a time
	RequestsPerMinute int     `yaml:"requests_per_minute" json:"requests_per_minute"` // 0 = no limit
	Timeout           float64 `yaml:"timeout" json:"timeout"`                         // seconds per request
	Retries           int     `yaml:"retries" json:"retries"`                         // further tries of a request that failed
}

// Inputs returns the settings that can move a vector, those that only say how fast
// and with whose account it is computed left out. Of a folder and of a server only
// the contents matter: their identity is known when they are opened.
func (e Encoder) Inputs() Encoder {
	out := Encoder{Kind: e.Kind, Dims: e.Dims}
	switch e.Kind {
	case "static":
		out.Path = e.Path
	case "transformer":
		out.Path, out.Prefix, out.Transformer = e.Path, e.Prefix, e.Transformer
		out.Transformer.Batch = 0
	case "remote":
		out.Prefix = e.Prefix
		out.Remote = Remote{URL: e.Remote.URL, Model: e.Remote.Model, SendDims: e.Remote.SendDims, MaxBytes: e.Remote.MaxBytes}
	}
	return out
}

// Portable returns the configuration as it goes into an artifact: without the
// folder, the address and the name of the key, which are of one machine. An
// artifact must not be able to say which secret is sent where.
func (c Config) Portable() Config {
	c.Encoder.Path, c.Encoder.Remote.URL, c.Encoder.Remote.KeyEnv = "", "", ""
	return c
}

// Model holds the sizes of docs/reference/model.md.
type Model struct {
	Hidden        int     `yaml:"hidden" json:"hidden"`                 // H, width of the recurrent state
	Factors       int     `yaml:"factors" json:"factors"`               // number of categorical variables in z
	Classes       int     `yaml:"classes" json:"classes"`               // classes of each
	Adapter       int     `yaml:"adapter" json:"adapter"`               // P, width of adapted embeddings
	HeadHidden    int     `yaml:"head_hidden" json:"head_hidden"`       // width of the hidden layer of each risk head
	FeatureHidden int     `yaml:"feature_hidden" json:"feature_hidden"` // width of each head's network over the call features alone; 0 = none
	UniformMix    float64 `yaml:"uniform_mix" json:"uniform_mix"`       // share of the uniform distribution in each categorical
	Latent        string  `yaml:"latent" json:"latent"`                 // probabilities or mode: z at run time
}

// Train configures both stages.
type Train struct {
	Batch           int     `yaml:"batch" json:"batch"`                 // trajectories per step
	MaxSteps        int     `yaml:"max_steps" json:"max_steps"`         // longest part of a trajectory in one unrolled graph; longer ones keep their last steps up to the hazard
	Buckets         []int   `yaml:"buckets" json:"buckets"`             // padded lengths, ascending; the last equals max_steps
	LR              float64 `yaml:"lr" json:"lr"`                       // Adam step size
	Clip            float64 `yaml:"clip" json:"clip"`                   // global gradient norm
	WorldScale      float64 `yaml:"world_scale" json:"world_scale"`     // learning-rate scale of world-model groups in stage 2
	AdapterScale    float64 `yaml:"adapter_scale" json:"adapter_scale"` // learning-rate scale of adapters in stage 2
	Stage1          Stage1  `yaml:"stage1" json:"stage1"`
	Stage2          Stage2  `yaml:"stage2" json:"stage2"`
	Trees           Trees   `yaml:"trees" json:"trees"`
	CheckpointEvery int     `yaml:"checkpoint_every" json:"checkpoint_every"` // steps
	ValidateEvery   int     `yaml:"validate_every" json:"validate_every"`     // steps
	Patience        int     `yaml:"patience" json:"patience"`                 // validations without improvement before stage 2 stops; 0 = never
	Without         string  `yaml:"without" json:"without,omitempty"`         // for ablations: features, texts, state (which the heads then do not read) or memory (of the steps before); "" = nothing is left out
}

// Stage1 pretrains the world model.
type Stage1 struct {
	Steps     int     `yaml:"steps" json:"steps"`
	Predict   float64 `yaml:"predict" json:"predict"`     // w_pred: successor prediction from the posterior
	Prior     float64 `yaml:"prior" json:"prior"`         // weight of the prediction from the prior (JEPA term)
	Dynamics  float64 `yaml:"dynamics" json:"dynamics"`   // w_dyn
	Represent float64 `yaml:"represent" json:"represent"` // w_rep
	FreeBits  float64 `yaml:"free_bits" json:"free_bits"` // kappa, nats per step over all factors
}

// Stage2 supervises the risk heads.
type Stage2 struct {
	Steps       int     `yaml:"steps" json:"steps"`
	Horizon     int     `yaml:"horizon" json:"horizon"`           // K: steps before the hazard with a prefix target
	Decay       float64 `yaml:"decay" json:"decay"`               // rho
	Hazard      float64 `yaml:"hazard" json:"hazard"`             // weight of the hazard loss
	Prefix      float64 `yaml:"prefix" json:"prefix"`             // weight of the prefix loss
	World       float64 `yaml:"world" json:"world"`               // weight of the stage-1 loss, 0 = off
	WeakHazard  float64 `yaml:"weak_hazard" json:"weak_hazard"`   // weight of a run whose hazard was located by a weak rule
	PosWeight   float64 `yaml:"pos_weight" json:"pos_weight"`     // weight of positive hazard targets
	Dropout     float64 `yaml:"dropout" json:"dropout"`           // on the head's embedding inputs, training only
	DropState   float64 `yaml:"drop_state" json:"drop_state"`     // share of the steps that are judged by the call features alone, training only
	WeightDecay float64 `yaml:"weight_decay" json:"weight_decay"` // decoupled, on the heads
	Average     float64 `yaml:"average" json:"average"`           // decay of a running average of the weights, which is validated and kept; 0 = none
}

// Trees configures the boosted trees of the risk heads, which read the call features
// alone and are grown after stage 2.
type Trees struct {
	Count   int     `yaml:"count" json:"count"`       // most trees of a head; how many there are is chosen on validation runs. 0 = none
	Leaves  int     `yaml:"leaves" json:"leaves"`     // most leaves of a tree
	Depth   int     `yaml:"depth" json:"depth"`       // most splits between root and leaf
	MinLeaf int     `yaml:"min_leaf" json:"min_leaf"` // fewest training steps of a leaf
	Rate    float64 `yaml:"rate" json:"rate"`         // shrinkage
	L2      float64 `yaml:"l2" json:"l2"`             // penalty on a leaf's value
	Hazard  float64 `yaml:"hazard" json:"hazard"`     // share of the hazard logit that is the trees'
	Prefix  float64 `yaml:"prefix" json:"prefix"`     // share of the prefix logit that is the trees'
}

// Calib configures calibration.
type Calib struct {
	Alpha      float64 `yaml:"alpha" json:"alpha"`             // promised bound on P(HOLD or BLOCK | safe run)
	AlphaBlock float64 `yaml:"alpha_block" json:"alpha_block"` // share of it spent on BLOCK
	Beta       float64 `yaml:"beta" json:"beta"`               // smoothing of the prefix probability
	Window     int     `yaml:"window" json:"window"`           // W
	PaperClamp bool    `yaml:"paper_clamp" json:"paper_clamp"` // min(k, n) when n is too small: no guarantee
}

// Eval configures evaluation.
type Eval struct {
	Recalibrate      int  `yaml:"recalibrate" json:"recalibrate"`             // safe target runs for the +recalibrated rows
	RecalibrateDraws int  `yaml:"recalibrate_draws" json:"recalibrate_draws"` // seeded draws
	Bootstrap        int  `yaml:"bootstrap" json:"bootstrap"`                 // resamples of groups
	LockedSmoke      bool `yaml:"locked_smoke" json:"locked_smoke"`           // run the locked sets without --final: preset debug only
}
