package train

import (
	"fmt"
	"testing"

	"github.com/dreamguard/dreamguard/configs"
)

// A configuration that is accepted when it is read is not refused by training,
// after the data and embed stages have done their work.
func TestConfigBoundsAgree(t *testing.T) {
	keys := []string{
		"model.hidden", "model.factors", "model.classes", "model.adapter", "model.head_hidden", "model.feature_hidden", "model.uniform_mix",
		"train.batch", "train.lr", "train.clip", "train.world_scale", "train.adapter_scale",
		"train.stage1.steps", "train.stage1.predict", "train.stage1.prior", "train.stage1.dynamics", "train.stage1.represent", "train.stage1.free_bits",
		"train.stage2.steps", "train.stage2.horizon", "train.stage2.decay", "train.stage2.hazard", "train.stage2.prefix", "train.stage2.world",
		"train.stage2.weak_hazard", "train.stage2.pos_weight", "train.stage2.dropout", "train.stage2.drop_state", "train.stage2.weight_decay", "train.stage2.average",
	}
	for _, key := range keys {
		accepted := 0
		for _, value := range []string{"0", "1", "2", "64", "256", "1000", "4096", "16384", "1000000", "0.0001", "0.5", "0.95", "0.96", "0.999", "99.5"} {
			c, err := configs.Load("paper")
			if err != nil {
				t.Fatal(err)
			}
			if c.Set(fmt.Sprintf("%s=%s", key, value)) != nil || c.Validate() != nil {
				continue
			}
			accepted++
			if err := checkConfig(c, Dims{D: 8, F: 5}); err != nil {
				t.Errorf("%s=%s is a valid configuration, and training refuses it: %v", key, value, err)
			}
		}
		if accepted == 0 {
			t.Errorf("%s: no value was accepted", key)
		}
	}
	c, err := configs.Load("paper")
	if err != nil {
		t.Fatal(err)
	}
	c.Model.Factors, c.Model.Classes = 256, 256
	if c.Validate() == nil {
		t.Error("model.factors x model.classes is not bounded")
	}
}
