#include "libalpa/checkpoint/exchange_weights.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "libalpa/base/bfloat16.h"
#include "libalpa/base/error.h"
#include "libalpa/checkpoint/checkpoint.h"
#include "libalpa/checkpoint/initial_state.h"
#include "libalpa/h5/file.h"
#include "libalpa/model/model.h"
#include "libalpa/weights/safetensors_file.h"
#include "tests/h5/temporary_folder.h"
#include "tests/support/interpreter.h"

// Weights of others: tests/reference/weights.py wrote small files with the names of three families, and the
// logits that PyTorch's modules give for them.
namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::filesystem::path source = ALPA_SOURCE_DIR;

class ExchangeWeights : public ::testing::TestWithParam<const char*> {
 protected:
  static std::filesystem::path file_of(const std::string& family) {
    return source / "tests" / "reference" / (family + ".safetensors");
  }

  /// The model that a file is of, with something added to its text.
  static ModelDefinition model_of(const std::string& family, const std::string& addition = "") {
    return parse_model("base = \"small_" + family + ".toml\"\nname = \"other\"\n" + addition,
                       source / "tests" / "data" / "other.toml", {source / "share" / "blocks"});
  }

  void import(const std::filesystem::path& weights, const ModelDefinition& model,
              NonFinite non_finite = NonFinite::refused) {
    import_weights(weights, training_step_graph(model, model.training.group_samples), model.training,
                   checkpoint_, non_finite, {}, log_);
  }

  /// Of the imported weights, before the loss.
  Values logits_of(const ModelDefinition& model, std::int64_t samples,
                   const std::vector<std::int64_t>& tokens) const {
    const Graph graph = forward_graph(model, samples, false);
    const std::unique_ptr<Device> device = make_cpu_device(1);
    Interpreter forward(*device, graph);
    for (const State& weight : graph.states) forward.set(weight.value, state(weight.name));
    for (const Input& input : graph.inputs)
      if (input.kind == InputKind::tokens || input.kind == InputKind::targets)
        forward.set(input.value, Values(tokens.begin(), tokens.end()));
    forward.run_forward({1, 0, 0});
    const auto head = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                   [](const Node& node) { return node.op->name == "row_max"; });
    return head == graph.nodes.end() ? Values{} : forward.get(head->operands[0]);
  }

  Values state(const std::string& name) const {
    const TensorReader file = open_checkpoint(checkpoint_);
    const TensorType type = file.tensors().at(name);
    std::vector<std::byte> bytes(static_cast<std::size_t>(byte_count(type)));
    file.read_all(name, bytes.data());
    return unpacked(bytes, type.dtype);
  }

  static std::string bytes_of(SafetensorsReader& file, const std::string& name) {
    const StoredTensor& tensor = file.tensors().at(name);
    std::string bytes(static_cast<std::size_t>(tensor.end - tensor.begin), '\0');
    file.read(tensor, 0, tensor.end - tensor.begin, bytes.data());
    return bytes;
  }

  TemporaryFolder folder_;
  const std::filesystem::path checkpoint_ = folder_.path() / "imported.h5",
                              exported_ = folder_.path() / "exported.safetensors";
  Log log_{"test", LogLevel::off};
};

// In float32 against float64: logits are of order 1, and some hundred roundings of 6e-8 each stay far below.
constexpr double tolerance = 1e-4;

TEST_P(ExchangeWeights, GiveTheLogitsOfPyTorch) {
  const std::string family = GetParam();
  const ModelDefinition model = model_of(family);
  import(file_of(family), model);
  const H5Reader reference((source / "tests" / "reference" / "logits.h5").string(), "alpa-reference", "1.0");
  const Values logits = logits_of(model, 2, reference.int64s("/" + family + "/tokens"));
  const Values expected = reference.doubles("/" + family + "/logits");
  ASSERT_EQ(logits.size(), expected.size());
  ASSERT_EQ(logits.size(), 2u * 12 * 64);
  for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], tolerance) << i;
}

TEST_P(ExchangeWeights, AreWrittenByteForByteAsTheyWereRead) {
  const std::string family = GetParam();
  import(file_of(family), model_of(family));
  export_weights(checkpoint_, family, exported_, log_);
  SafetensorsReader before(file_of(family)), after(exported_);
  // BERT's row for the first segment is in the rows of positions afterwards.
  const std::string segments = "bert.embeddings.token_type_embeddings.weight",
                    positions = "bert.embeddings.position_embeddings.weight";
  std::size_t equal = 0;
  for (const auto& [name, tensor] : after.tensors()) {
    if (name == segments || name == positions) continue;
    ASSERT_TRUE(before.tensors().contains(name)) << name;
    EXPECT_EQ(tensor.dtype, "F32");
    EXPECT_EQ(tensor.shape, before.tensors().at(name).shape) << name;
    EXPECT_EQ(bytes_of(after, name), bytes_of(before, name)) << name;
    ++equal;
  }
  // All weights of the file but masks, and what a masked language model has no use for or has once.
  EXPECT_EQ(equal, family == "gpt2" ? 4u + 2 * 12 : family == "llama" ? 3u + 2 * 9 : 3u + 2 * 16 + 5);
}

TEST_P(ExchangeWeights, StartARunAtStep0WithMomentsOfZero) {
  import(file_of(GetParam()), model_of(GetParam()));
  EXPECT_EQ(verify_checkpoint(checkpoint_).step, 0);
  for (const char* moment : {"embedding.table.moment1", "block.1.mlp.up.moment2"})
    for (const double element : state(moment)) EXPECT_EQ(element, 0);
}

// Factors of zeros would stay so.
TEST_P(ExchangeWeights, StartARunWithFactorsAsTheyAreDrawn) {
  const ModelDefinition model =
      model_of(GetParam(), "[training]\ngradient_compression = \"powersgd\"\ncompression_rank = 2\n");
  import(file_of(GetParam()), model);
  const Graph graph = training_step_graph(model, 1);
  const auto factor = std::ranges::find(graph.states, "block.1.mlp.up.factor", &State::name);
  ASSERT_NE(factor, graph.states.end());
  const TensorType type = value_of(graph, factor->value).type;
  std::vector<std::byte> drawn(static_cast<std::size_t>(byte_count(type)));
  fill_initial_state(graph, *factor, {Shape(2, 0), type.shape, 0, element_count(type.shape)},
                     model.training.seed, drawn.data());
  EXPECT_EQ(state(factor->name), unpacked(drawn, type.dtype));
  for (const double element : state("block.1.mlp.up.error")) EXPECT_EQ(element, 0);
}

INSTANTIATE_TEST_SUITE_P(Families, ExchangeWeights, ::testing::Values("gpt2", "llama", "bert"),
                         [](const auto& family) { return std::string(family.param); });

using ExchangeOfGpt2 = ExchangeWeights;
using ExchangeOfLlama = ExchangeWeights;

/// A file as large models are published: every second tensor in each of two, and an index. Gives its path.
std::filesystem::path write_in_two_files(const std::filesystem::path& from, const std::filesystem::path& to) {
  SafetensorsReader read(from);
  std::string weight_map;
  for (const std::size_t part : {0u, 1u}) {
    const std::string file = fmt::format("model-0000{}-of-00002.safetensors", part + 1);
    std::vector<StoredTensor> tensors;
    for (std::size_t i = 0; const auto& [name, tensor] : read.tensors()) {
      if (i++ % 2 != part) continue;
      tensors.push_back(tensor);
      weight_map += fmt::format("{}\"{}\": \"{}\"", weight_map.empty() ? "" : ", ", name, file);
    }
    SafetensorsWriter written(to / file, tensors);
    for (const StoredTensor& tensor : written.tensors()) {
      std::string bytes(static_cast<std::size_t>(tensor.end - tensor.begin), '\0');
      read.read(read.tensors().at(tensor.name), 0, tensor.end - tensor.begin, bytes.data());
      written.write(tensor, bytes);
    }
    written.publish();
  }
  const std::filesystem::path index = to / "model.safetensors.index.json";
  std::ofstream(index) << "{\"metadata\": {}, \"weight_map\": {" << weight_map << "}}";
  return index;
}

TEST_F(ExchangeOfLlama, MayBeInSeveralFilesWithAnIndex) {
  import(write_in_two_files(file_of("llama"), folder_.path()), model_of("llama"));
  export_weights(checkpoint_, "llama", exported_, log_);
  SafetensorsReader before(file_of("llama")), after(exported_);
  EXPECT_EQ(after.tensors().size(), 3u + 2 * 9);
  for (const auto& [name, tensor] : after.tensors())
    EXPECT_EQ(bytes_of(after, name), bytes_of(before, name)) << name;
}

// A network of convolutions with running averages: what it has learnt, and not the momentum of its updates.
TEST_F(ExchangeOfGpt2, MayHaveTheModelsOwnNames) {
  const ModelDefinition model =
      read_model(source / "tests/data/tiny_wrn.toml", {source / "share" / "blocks"});
  const Graph graph = training_step_graph(model, model.training.batch);
  const std::filesystem::path trained = folder_.path() / "trained.h5";
  save_checkpoint(trained, {}, graph,
                  [&](const State& state, void* values) {
                    const TensorType type = unpadded_type(graph, state);
                    std::fill_n(static_cast<float*>(values), element_count(type.shape),
                                static_cast<float>(state.name.size()) / 64);
                  },
                  {});
  export_weights(trained, "own", exported_, log_);
  import(exported_, model);
  std::size_t kept = 0, averages = 0;
  for (const State& state : graph.states) {
    const bool belongs = state.name.ends_with(".momentum") || state.name.ends_with(".moment1") ||
                         state.name.ends_with(".moment2");
    const Values values = this->state(state.name);
    if (!belongs) {
      EXPECT_THAT(values, ::testing::Each(static_cast<double>(state.name.size()) / 64)) << state.name;
      averages += !state.is_parameter;
      ++kept;
    } else {
      EXPECT_THAT(values, ::testing::Each(0.0)) << state.name;
    }
  }
  EXPECT_EQ(SafetensorsReader(exported_).tensors().size(), kept);
  EXPECT_GT(averages, 0u);
}

// The same at full size. What PyTorch gives of 16 tokens are the first 16 rows here: later tokens are not
// seen.
TEST_F(ExchangeOfGpt2, AtFullSizeGivesTheLogitsOfPyTorchAndIsWrittenByteForByte) {
  const std::string python = "/usr/bin/python3";
  if (std::system((python + " -c 'import torch, h5py' 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "python3-torch and python3-h5py, which make the file, are not installed";
  const std::string script = (source / "tests/reference/weights.py").string();
  ASSERT_EQ(std::system((python + " " + script + " " + folder_.path().string() + " >/dev/null").c_str()), 0);
  const std::filesystem::path file = folder_.path() / "gpt2.safetensors";
  const ModelDefinition model =
      read_model(source / "configs/models/gpt2-124m.toml", {source / "share" / "blocks"});
  import(file, model);

  const H5Reader reference((folder_.path() / "logits.h5").string(), "alpa-reference", "1.0");
  std::vector<std::int64_t> tokens = reference.int64s("/gpt2/tokens");
  tokens.resize(1024);
  const Values logits = logits_of(model, 1, tokens), expected = reference.doubles("/gpt2/logits");
  ASSERT_EQ(expected.size(), 16u * 50257);
  ASSERT_EQ(logits.size(), 1024u * 50257);
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(logits[i], expected[i], tolerance) << i;

  export_weights(checkpoint_, "gpt2", exported_, log_);
  SafetensorsReader before(file), after(exported_);
  EXPECT_EQ(after.tensors().size(), 4u + 12 * 12);
  for (const auto& [name, tensor] : after.tensors()) {
    ASSERT_TRUE(before.tensors().contains(name)) << name;
    EXPECT_TRUE(bytes_of(after, name) == bytes_of(before, name)) << name;
  }
}

TEST_F(ExchangeOfGpt2, RoundsTo16BitsAndKeepsMastersWhole) {
  import(file_of("gpt2"), model_of("gpt2"));
  const Values whole = state("block.1.attention.key");
  for (const auto& [dtype, stored] : {std::pair(DType::bf16, "BF16"), {DType::f16, "F16"}}) {
    const ModelDefinition model =
        model_of("gpt2", fmt::format("[training]\nprecision = \"{}\"\n", dtype_name(dtype)));
    import(file_of("gpt2"), model);
    EXPECT_EQ(state("block.1.attention.key.master"), whole);
    EXPECT_EQ(state("block.1.attention.key"), rounded(whole, dtype));

    // Now the types are the same, so what is written is what is read.
    export_weights(checkpoint_, "gpt2", exported_, log_);
    import(exported_, model);
    const std::filesystem::path again = folder_.path() / "again.safetensors";
    export_weights(checkpoint_, "gpt2", again, log_);
    SafetensorsReader first(exported_), second(again);
    EXPECT_EQ(first.tensors().at("wte.weight").dtype, stored);
    for (const auto& [name, tensor] : first.tensors())
      EXPECT_EQ(bytes_of(first, name), bytes_of(second, name));
  }
}

/// The file of GPT-2 with a head that is stored too, with another last byte.
void write_with_head(const std::filesystem::path& from, const std::filesystem::path& to, int last) {
  SafetensorsReader read(from);
  std::vector<StoredTensor> tensors{{"lm_head.weight", "F32", {64, 24}}};
  for (const auto& [name, tensor] : read.tensors()) tensors.push_back(tensor);
  SafetensorsWriter written(to, tensors);
  for (const StoredTensor& tensor : written.tensors()) {
    std::string bytes(static_cast<std::size_t>(tensor.end - tensor.begin), '\0');
    read.read(read.tensors().at(tensor.name == "lm_head.weight" ? "wte.weight" : tensor.name), 0,
              tensor.end - tensor.begin, bytes.data());
    if (tensor.name == "lm_head.weight") bytes.back() = static_cast<char>(bytes.back() + last);
    written.write(tensor, bytes);
  }
  written.publish();
}

TEST_F(ExchangeOfGpt2, HasATiedHeadOnce) {
  const std::filesystem::path with_head = folder_.path() / "head.safetensors";
  write_with_head(file_of("gpt2"), with_head, 0);
  import(with_head, model_of("gpt2"));
  export_weights(checkpoint_, "gpt2", exported_, log_);
  EXPECT_FALSE(SafetensorsReader(exported_).tensors().contains("lm_head.weight"));

  write_with_head(file_of("gpt2"), with_head, 1);
  EXPECT_THAT([&] { import(with_head, model_of("gpt2")); },
              ThrowsMessage<Error>(HasSubstr("'lm_head.weight' and 'wte.weight'")));
}

TEST_F(ExchangeOfGpt2, IsNotWrittenWithNamesOfAnotherFamily) {
  import(file_of("gpt2"), model_of("gpt2"));
  EXPECT_THAT([&] { export_weights(checkpoint_, "llama", exported_, log_); },
              ThrowsMessage<Error>(HasSubstr(" have none for ")));
  // BERT has all of GPT's weights, and more.
  EXPECT_THAT([&] { export_weights(checkpoint_, "bert", exported_, log_); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("the model lacks 5 of the weights of BERT as a masked language model:\n"
                                  "  'bert.embeddings.LayerNorm.bias'\n  'bert.embeddings.LayerNorm.weight'\n"
                                  "  'cls.predictions.bias'\n"),
                        HasSubstr("another family's names"))));
  EXPECT_FALSE(std::filesystem::exists(exported_));
}

TEST_F(ExchangeOfGpt2, IsRefusedWithNumbersThatAreNone) {
  SafetensorsReader read(file_of("gpt2"));
  for (const float number : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const std::filesystem::path spoiled = folder_.path() / "spoiled.safetensors";
    std::vector<StoredTensor> tensors;
    for (const auto& [name, tensor] : read.tensors()) tensors.push_back(tensor);
    SafetensorsWriter written(spoiled, tensors);
    for (const StoredTensor& tensor : written.tensors()) {
      std::string bytes = bytes_of(read, tensor.name);
      if (tensor.name == "h.1.mlp.c_fc.weight") std::memcpy(&bytes[4 * 7], &number, sizeof number);
      written.write(tensor, bytes);
    }
    written.publish();
    EXPECT_THAT([&] { import(spoiled, model_of("gpt2")); },
                ThrowsMessage<Error>(AllOf(HasSubstr("'h.1.mlp.c_fc.weight'"), HasSubstr("'block.1.mlp.up'"),
                                           HasSubstr("element 7 is "), HasSubstr("--allow-non-finite"))));
    EXPECT_FALSE(std::filesystem::exists(checkpoint_));
    import(spoiled, model_of("gpt2"), NonFinite::taken);
    EXPECT_FALSE(std::isfinite(state("block.1.mlp.up")[7]));
    std::filesystem::remove(checkpoint_);
  }
}

}  // namespace
}  // namespace alpa
