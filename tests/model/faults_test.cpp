
#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "tests/model/models.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A sound model; each row of the tables below spoils one place of it.
const std::string sound = R"(name = "small"
[dimensions]
vocabulary = 16
model = 8
inner = "2 * model"
[training]
sequence = 4
[block.unit]
parameters = ["model", "inner"]
defaults = {deviation = 0.1}
inputs = ["x"]
outputs = ["y"]
steps = [
  {op = "einsum", equation = "b s d, d f -> b s f", of = ["x", "up"], as = "wide"},
  {op = "gelu", of = "wide", as = "wide"},
  {op = "einsum", equation = "b s f, f d -> b s d", of = ["wide", "down"], as = "y"},
]
[block.unit.weights]
up = {shape = ["model", "inner"], init = {normal = "deviation"}}
down = {shape = ["inner", "model"], init = "zeros"}
[[layer]]
block = "token_embedding"
name = "embedding"
of = "tokens"
as = "x"
[[layer]]
block = "unit"
repeat = 2
of = "x"
as = "x"
[[layer]]
block = "gpt_head"
name = "head"
of = ["x", "targets"]
as = "loss"
tie = {table = "embedding.table"}
)";

std::string spoilt(const std::string& what, const std::string& with) {
  std::string text = sound;
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

std::string fault_of(const std::string& text) {
  try {
    parse_model(text, "small.toml", {std::string(ALPA_SOURCE_DIR) + "/share/blocks"});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "no fault";
}

struct Row {
  const char *what, *with, *fault;
};

TEST(ModelFaults, ASoundModelHasNone) { EXPECT_EQ(fault_of(sound), "no fault"); }

TEST(ModelFaults, OfNamesGiveThePlaceAndTheNearestName) {
  for (const Row& row : {
           Row{"\"gelu\"", "\"gelo\"", "small.toml:15:3: unknown operator 'gelo', did you mean 'gelu'?"},
           Row{"\"gelu\"", "\"adamw\"", "small.toml:15:3: unknown operator 'adamw'"},
           Row{"\"unit\"\nrepeat", "\"unti\"\nrepeat", "no block is named 'unti', did you mean 'unit'?"},
           Row{"of = \"wide\"", "of = \"wade\"",
               "small.toml:15:3: unknown value 'wade', did you mean 'wide'?"},
           Row{"inner = \"2 * model\"", "inner = \"2 * modle\"",
               "small.toml:5:1: in '2 * modle': no number is named 'modle', did you mean 'model'?"},
           Row{"{normal = \"deviation\"}", "{normal = \"deviaton\"}",
               "small.toml:19:1: in 'deviaton': no number is named"},
           Row{"repeat = 2", "repeat = \"layers\"", "in 'layers': no number is named 'layers'"},
           Row{"repeat = 2", "repeats = 2",
               "block 'unit' has no parameter 'repeats', did you mean 'repeat'?"},
           Row{"repeat = 2", "repeat = 2\nindex = \"i\"", "nothing uses the number 'i'"},
           Row{"repeat = 2", "index = \"i\"\ninner = \"8 + i\"",
               "'index' names 'i', but there is no 'repeat'"},
           Row{"repeat = 2", "repeat = 2\nindex = \"model\"\ninner = \"model\"",
               "there is already a number 'model'"},
           Row{"inner = \"2 * model\"\n", "",
               "block 'unit' wants the parameter 'inner': give it here, or have a number of that name"},
           Row{"{op = \"gelu\", ", "{op = \"gelu\", rate = 1, ",
               "small.toml:15:17: operator 'gelu' has no setting 'rate'"},
           Row{"equation = \"b s d, d f -> b s f\", ", "", "operator 'einsum' wants 'equation', a text"},
           Row{"as = \"loss\"", "as = \"lost\"", "the layers give no value 'loss', did you mean 'lost'?"},
           Row{"{table = ", "{tabel = ", "this layer has no weight 'tabel', did you mean 'table'?"},
           Row{"embedding.table", "embeding.table",
               "no weight before this layer is named 'embeding.table', did you mean 'embedding.table'?"},
       })
    EXPECT_THAT(fault_of(spoilt(row.what, row.with)), HasSubstr(row.fault));
}

TEST(ModelFaults, OfWhatIsWrittenSayWhatWasExpected) {
  for (const Row& row : {
           Row{"[training]", "[trainig]", "small.toml:6:2: unknown key 'trainig'; did you mean 'training'?"},
           Row{"sequence = 4", "sequense = 4",
               "small.toml:7:1: unknown key 'sequense' in 'training'; did you mean 'sequence'?"},
           Row{"sequence = 4", "sequence = \"4\"", "'training.sequence': expected an integer"},
           Row{"sequence = 4", "sequence = 0", "'training.sequence': expected an integer, from 1 to"},
           Row{"inputs = [\"x\"]\n", "", "missing key 'inputs' in 'block.unit', expected a list of values"},
           Row{"{normal = \"deviation\"}", "\"one\"",
               "expected one of 'zeros', 'ones', got 'one'; did you mean 'ones'?"},
           Row{"{normal = \"deviation\"}", "{normal = 1, uniform = 2}",
               "expected \"zeros\", \"ones\", {normal = deviation}"},
           Row{"{normal = \"deviation\"}", "{normal = -1}",
               "'up' starts with a spread of -1, expected a number from 0 to 1e+30"},
           Row{"{normal = \"deviation\"}", "{normal = 1e300}",
               "'up' starts with a spread of 1e+300, expected"},
           Row{"name = \"small\"", "name = \"\"", "small.toml:1:8: 'name': expected a name"},
           Row{"name = \"small\"", "name = \"sm\\u001ball\"", "got the string 'sm\\x1ball'"},
           Row{"name = \"small\"", "name = \"small\"\npaper_flops = \"-2 * batch\"",
               "small.toml:2:15: 'paper_flops' is -16, expected at least 0"},
           Row{"sequence = 4", "sequence = 1000000000\nbatch = 1000000000",
               "small.toml:6:1: 1000000000 samples ('batch') of 1000000000 tokens ('sequence') are more than "
               "4398046511104"},
           Row{"inner = \"2 * model\"", "inner = \"2 *\"",
               "small.toml:5:9: in '2 *' at character 4: expected a number or a name"},
           Row{"vocabulary = 16", "vocabulary = 16.5",
               "dimension 'vocabulary' is 16.5, expected an integer from 1 to"},
           Row{"vocabulary = 16", "vocabulary = 0",
               "dimension 'vocabulary' is 0, expected an integer from 1 to"},
           Row{"vocabulary = 16", "sequence = 16", "there is already a number 'sequence'"},
           Row{"{op = \"gelu\"", "{op = \"gelu\", block = \"unit\"",
               "a step has one of 'op', 'block' and 'metric'"},
           Row{"as = \"wide\"},\n  {op = \"gelu\"", "as = [\"wide\", \"b\"]},\n  {op = \"gelu\"",
               "an operator gives one value, 'as' names 2"},
           Row{"as = \"wide\"},\n  {op = \"gelu\"", "as = \"2 wide\"},\n  {op = \"gelu\"",
               "'2 wide' is not a name"},
           Row{"of = [\"x\", \"targets\"]", "of = [\"x\"]", "block 'gpt_head' has 2 inputs, 'of' names 1"},
           Row{"of = \"wide\", as = \"wide\"", "of = \"wide\", as = \"thin\"",
               "nothing uses the value 'thin'"},
           Row{"of = \"wide\", as = \"wide\"", "of = \"x\", as = \"wide\"",
               "value 'wide' is replaced before anything uses it"},
           Row{"vocabulary = 16", "vocabulary = 16\nspare = 1", "nothing uses the number 'spare'"},
           Row{"name = \"head\"", "name = \"unit\"",
               "two uses of blocks are named 'unit'; give each a 'name' of its own"},
           Row{"name = \"small\"\n", "", "missing key 'name'"},
           Row{"name = \"small\"", "name = \"small\"\nbase = \"nowhere.toml\"",
               "there is no file 'nowhere.toml'"},
           Row{"{op = \"gelu\", of = \"wide\"", "{op = \"gelu\", of = 3", "expected a string"},
       })
    EXPECT_THAT(fault_of(spoilt(row.what, row.with)), HasSubstr(row.fault));
}

TEST(ModelFaults, OfShapesNameTheStepTheLayerAndTheOperands) {
  EXPECT_THAT(
      fault_of(spoilt("b s d, d f -> b s f", "b s d, f d -> b s f")),
      AllOf(HasSubstr("small.toml:14:3: in unit.0 (layer at small.toml:26): operator 'einsum' cannot take "
                      "(x f32[8x4x8], up f32[8x16]): "),
            HasSubstr("has 'd' of size 8 meet an extent of 16")));
  for (const Row& row : {
           Row{"b s d, d f -> b s f", "b s d, d f", "has no '->'"},
           Row{"b s d, d f -> b s f", "b s d, d f -> b f", "has 's' in one tensor only"},
           Row{"b s d, d f -> b s f", "b s d, d f -> b s f f", "has 'f' twice in one tensor"},
           Row{"b s d, d f -> b s f", "b s d, d f -> b s f | max d", "has a '|'"},
           Row{"of = [\"x\", \"up\"]", "of = [\"x\", \"up\", \"up\"]",
               "is applied to 3 operands, expected 2"},
           Row{"of = \"tokens\"\nas = \"x\"\n[[layer]]\nblock = \"unit\"\nrepeat = 2\nof = \"x\"",
               "of = \"tokens\"\nas = \"x\"\n[[layer]]\nblock = \"unit\"\nof = \"tokens\"",
               "value 'x' is replaced before"},
           Row{"[\"inner\", \"model\"]", "[\"inner\", \"model / 3\"]",
               "in 'model / 3': 8 is not divisible by 3"},
           Row{"[\"inner\", \"model\"]", "[\"inner\", \"model - 8\"]",
               "'model - 8' in the shape of 'down' is 0, expected an integer from 1 to"},
           Row{"{op = \"gelu\", of = \"wide\"", "{op = \"dropout\", rate = 1.0, of = \"wide\"",
               "'rate' is 1.0, expected a number, from 0 to 0.999999"},
           Row{"{op = \"gelu\", of = \"wide\"", "{op = \"dropout\", rate = 0.99999999999, of = \"wide\"",
               "'rate' is 0.99999999999, expected a number, from 0 to 0.999999"},
           Row{"sequence = 4", "sequence = 400\nbatch = 1000000000",
               "small.toml:15:3: in unit.0 (layer at small.toml:27): operator 'einsum' cannot take "},
           Row{"vocabulary = 16", "vocabulary = 1000000000000", "'table' has more than"},
           Row{"repeat = 2", "repeat = \"model / 3\"", "8 is not divisible by 3"},
       })
    EXPECT_THAT(fault_of(spoilt(row.what, row.with)), HasSubstr(row.fault));
}

TEST(ModelFaults, AWeightTiedToOneOfAnotherShapeIsRefused) {
  EXPECT_THAT(
      fault_of(spoilt("tie = {table = \"embedding.table\"}",
                      "vocabulary = 17\ntie = {table = \"embedding.table\"}")),
      HasSubstr("'head.table' is f32[17x8], and cannot be tied to 'embedding.table', which is f32[16x8]"));
}

TEST(ModelFaults, AWeightThatDoesNotReachTheLossIsNamed) {
  const std::string head = R"(
[block.own_head]
parameters = ["vocabulary", "model"]
inputs = ["x", "targets"]
outputs = ["loss"]
steps = [
  {op = "einsum", equation = "b s d, v d -> b s v", of = ["x", "table"], as = "logits"},
  {op = "bias_add", of = ["logits", "shift"], as = "shifted"},
  {op = "row_max", of = "shifted", as = "m"},
  {op = "row_sum_exp", of = ["logits", "m"], as = "z"},
  {op = "cross_entropy", of = ["logits", "targets", "m", "z"], as = "losses"},
  {op = "reduce_sum", of = "losses", as = "loss"},
]
[block.own_head.weights]
table = {shape = ["vocabulary", "model"], init = "zeros"}
shift = {shape = ["vocabulary"], init = "zeros"}
)";
  EXPECT_THAT(fault_of(spoilt("\"gpt_head\"", "\"own_head\"") + head),
              HasSubstr("parameter 'head.shift' does not reach the loss"));
}

TEST(ModelFaults, ALossThatIsNoSumIsRefused) {
  const std::string last = R"(
[[layer]]
block = "half"
of = "sum"
as = "loss"
[block.half]
inputs = ["x"]
outputs = ["y"]
steps = [{op = "scale", of = "x", as = "y", factor = 0.5}]
)";
  EXPECT_THAT(fault_of(spoilt("as = \"loss\"", "as = \"sum\"") + last),
              HasSubstr("'loss' is not what 'reduce_sum' gives"));
}

TEST(ModelFaults, OfOneFileAreReportedTogether) {
  std::string text = spoilt("\"gelu\"", "\"gelo\"");
  text.replace(text.find("sequence = 4"), 12, "sequence = -4");
  text.replace(text.find("2 * model"), 9, "2 * modle");
  text.replace(text.find("\"embedding\""), 11, "\"embedding\"\nsurprise = 1");
  EXPECT_THAT(fault_of(text), AllOf(HasSubstr("unknown operator 'gelo'"), HasSubstr("'training.sequence'"),
                                    HasSubstr("'modle'"), HasSubstr("no parameter 'surprise'")));
}

TEST(ModelFaults, AFaultInARepeatedBlockIsReportedOnce) {
  const std::string fault = fault_of(spoilt("b s d, d f -> b s f", "b s d, f d -> b s f"));
  EXPECT_THAT(fault, Not(HasSubstr("unit.1")));
}

TEST(ModelFaults, ABlockThatContainsItselfIsRefusedWithTheRing) {
  const std::string inner =
      "\n[block.other]\ninputs = [\"x\"]\noutputs = [\"y\"]\nsteps = [{block = \"unit\", of = \"x\", as = "
      "\"y\"}]\n";
  EXPECT_THAT(fault_of(spoilt("{op = \"gelu\", of", "{block = \"other\", of") + inner),
              HasSubstr("contains itself: other -> unit -> other"));
}

/// `height` blocks, each of which uses the next `times` times.
std::string tower(int times, int height) {
  std::string text = spoilt("{op = \"gelu\", of", "{block = \"t0\", of");
  for (int i = 0; i < height; ++i) {
    text += "[block.t" + std::to_string(i) + "]\ninputs = [\"x\"]\noutputs = [\"x\"]\nsteps = [\n";
    for (int n = 0; n < times; ++n)
      text += i + 1 == height ? std::string("{op = \"gelu\", of = \"x\", as = \"x\"},\n")
                              : "{block = \"t" + std::to_string(i + 1) + "\", name = \"n" +
                                    std::to_string(n) + "\", of = \"x\", as = \"x\"},\n";
    text += "]\n";
  }
  return text;
}

TEST(ModelFaults, UnfoldingIsBounded) {
  EXPECT_THAT(fault_of(spoilt("repeat = 2", "repeat = 1000000000")),
              HasSubstr("the model expands to more than"));
  EXPECT_THAT(fault_of(tower(1, 40)), HasSubstr("more than 32 levels deep"));
  EXPECT_THAT(fault_of(tower(10, 20)), HasSubstr("the model expands to more than 100000 steps"));
  EXPECT_THAT(fault_of(spoilt("repeat = 2", "repeat = 9000")),
              HasSubstr("the model expands to more than 10000 weights"));
}

TEST(ModelFaults, HostileTextIsRefusedAndDoesNotCrash) {
  EXPECT_THAT(fault_of("name = "), HasSubstr("small.toml:1:8"));
  EXPECT_THAT(fault_of("x = " + std::string(200'000, '[')), HasSubstr("nested more than 64 levels deep"));
  EXPECT_THAT(fault_of(sound + std::string(2'000'000, ' ')), HasSubstr("larger than"));
  EXPECT_THAT(fault_of(""), AllOf(HasSubstr("missing key 'name'"), HasSubstr("missing key 'layer'")));
  EXPECT_THAT(fault_of("name = 1\nlayer = 2\nblock = 3\ndimensions = 4\ntraining = []\nbase = 5"),
              HasSubstr("expected a string"));
  EXPECT_THAT(fault_of("name = \"a\"\nlayer = [{}]\n[block.b]\nsteps = [{}]\nweights = {c = {}}\n"),
              HasSubstr("missing key 'block'"));
}

}  // namespace
}  // namespace alpa
