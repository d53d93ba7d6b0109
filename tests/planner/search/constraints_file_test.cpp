#include "libalpa/planner/search/constraints_file.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const PlanConstraint& constraint : parse_constraints(text, "folder/limits.toml").all)
    lines.push_back(constraint.where + " " + constraint_text(constraint));
  return lines;
}

TEST(ConstraintsFile, HasAConstraintForEachKeyAndTable) {
  EXPECT_THAT(
      lines_of(R"(most_tensor_parallel = 8
most_zero = 1
most_stages = 4
micro_batches = [32, 16]
recompute = "never"
schedule = "gpipe"
[[tensor]]
name = "block.*.mlp.up"
split = 1
[[tensor]]
name = "head.logits"
whole = true
[[boundary]]
after = "block.3"
[[boundary]]
before = "head"
[[together]]
layers = ["block.0", "block.3"]
[[apart]]
devices = [8, 0]
[[gradient]]
name = "block.*.mlp.*"
way = "zero-2"
)"),
      ElementsAre("limits.toml:1 tensor parallelism over at most 8 devices", "limits.toml:2 ZeRO at most 1",
                  "limits.toml:3 at most 4 pipeline stages", "limits.toml:4 16 or 32 micro-batches",
                  "limits.toml:5 nothing recomputed", "limits.toml:6 schedule gpipe",
                  "limits.toml:7 'block.*.mlp.up' split in dimension 1", "limits.toml:10 'head.logits' whole",
                  "limits.toml:13 a stage ends with layer 'block.3'",
                  "limits.toml:15 a stage begins with layer 'head'",
                  "limits.toml:17 layers 'block.0' to 'block.3' on one stage",
                  "limits.toml:19 devices 0 and 8 never in one group",
                  "limits.toml:21 gradients of 'block.*.mlp.*' by zero-2"));
  EXPECT_THAT(lines_of("stages = 4\nrecompute = \"always\""),
              ElementsAre("limits.toml:1 4 pipeline stages", "limits.toml:2 all layers recomputed"));
  EXPECT_THAT(
      lines_of("overlap = \"all\"\nupdates = \"next-forward\"\nsync = \"ddp\"\nsync_order = \"ready\""),
      ElementsAre("limits.toml:1 overlap all", "limits.toml:2 updates next-forward", "limits.toml:3 sync ddp",
                  "limits.toml:4 sync-order ready"));
  EXPECT_THAT(lines_of("recompute = \"selective\""),
              ElementsAre("limits.toml:1 all layers recomputed selectively"));
}

TEST(ConstraintsFile, OfTheExamplesAreSound) {
  for (const auto& entry : std::filesystem::directory_iterator(ALPA_SOURCE_DIR "/configs/constraints"))
    EXPECT_FALSE(read_constraints(entry.path()).empty());
}

struct BadConstraints {
  const char *text, *fault;
};

class BadConstraintsFile : public testing::TestWithParam<BadConstraints> {};

TEST_P(BadConstraintsFile, IsRefusedAtItsLine) {
  EXPECT_THAT([] { parse_constraints(GetParam().text, "limits.toml"); },
              ThrowsMessage<Error>(HasSubstr(GetParam().fault)));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, BadConstraintsFile,
    testing::Values(
        BadConstraints{"", "limits.toml:1:1: expected at least one constraint"},
        BadConstraints{"most_zeros = 1", "did you mean 'most_zero'?"},
        BadConstraints{"\nmost_zero = 4",
                       "limits.toml:2:13: 'most_zero': expected an integer, from 0 to 3, got 4"},
        BadConstraints{"stages = 2\nmost_stages = 3", "'most_stages' together with 'stages', expected one"},
        BadConstraints{"micro_batches = []", "expected a list of one number or more"},
        BadConstraints{"recompute = \"nevr\"", "did you mean 'never'?"},
        BadConstraints{"schedule = \"gpip\"", "did you mean 'gpipe'?"},
        BadConstraints{"[[tensor]]\nsplit = 1", "missing key 'name'"},
        BadConstraints{"[[tensor]]\nname = \"x\"", "expected either 'split = DIMENSION' or 'whole = true'"},
        BadConstraints{"[[tensor]]\nname = \"x\"\nwhole = false", "'whole': expected true"},
        BadConstraints{"sync = \"dpp\"", "did you mean 'ddp'?"},
        BadConstraints{"[[gradient]]\nname = \"x\"", "missing key 'way'"},
        BadConstraints{"[[gradient]]\nname = \"x\"\nway = \"zero-4\"", "did you mean 'zero-"},
        BadConstraints{"[[gradient]]\nname = \"x\"\nway = \"as-planned\"",
                       "expected one of 'all-reduce', 'zero-1', "},
        BadConstraints{"[[boundary]]\nafter = \"x\"\nbefore = \"y\"",
                       "expected either 'after = LAYER' or 'before = LAYER'"},
        BadConstraints{"[[together]]\nlayers = [\"x\"]", "expected the first and the last layer"},
        BadConstraints{"[[apart]]\ndevices = [1, 1]", "expected two devices, found one twice"},
        BadConstraints{"[[apart]]\ndevices = [-1, 1]", "expected an integer, from 0 to 262143, got -1"}),
    [](const auto& bad) { return "Case" + std::to_string(bad.index); });

}  // namespace
}  // namespace alpa
