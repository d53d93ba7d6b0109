#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "libalpa/model/model.h"
#include "libalpa/ops/catalog.h"
#include "tests/model/models.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> all_models() {
  std::vector<std::string> files;
  for (const char* folder : {"configs/models", "tests/data"})
    for (const auto& entry : fs::directory_iterator(fs::path(ALPA_SOURCE_DIR) / folder))
      if (entry.path().extension() == ".toml")
        files.push_back(std::string(folder) + "/" + entry.path().filename().string());
  std::sort(files.begin(), files.end());
  return files;
}

class EveryModelFile : public testing::TestWithParam<std::string> {};

TEST_P(EveryModelFile, IsRebuiltFromItsExpandedTextAlone) {
  const ModelDefinition model = model_file(GetParam());
  const ModelDefinition again = parse_model(model.expanded_toml, "expanded");
  EXPECT_EQ(again.expanded_toml, model.expanded_toml);
  EXPECT_EQ(again.training, model.training);
  EXPECT_EQ(graph_fingerprint(forward_graph(again, model.training.batch, true)),
            graph_fingerprint(forward_graph(model, model.training.batch, true)));
}

TEST(Models, AreCutBetweenEmbeddingBlocksAndHead) {
  for (const char* name : {"gpt", "llama", "mlp", "bert"}) {
    const Graph graph = forward_graph(model_file(std::string("tests/data/tiny_") + name + ".toml"), 1, false);
    EXPECT_EQ(graph.layers.front(), "embedding") << name;
    EXPECT_EQ(graph.layers[1], "block.0") << name;
    EXPECT_EQ(graph.layers.back(), "head") << name;
  }
}

TEST(LanguageReference, NamesEveryOperatorAndEveryBlock) {
  const fs::path folder = fs::path(ALPA_SOURCE_DIR) / "share" / "blocks";
  std::ifstream file(folder / "README.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const OpDef* op : op_catalog().all())
    EXPECT_TRUE(op->internal || text.find("`" + std::string(op->name) + "`") != std::string::npos)
        << op->name;
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_TRUE(entry.path().extension() != ".toml" ||
                text.find("`" + entry.path().stem().string() + "`") != std::string::npos)
        << entry.path();
}

INSTANTIATE_TEST_SUITE_P(Files, EveryModelFile, testing::ValuesIn(all_models()), [](const auto& file) {
  std::string name = fs::path(file.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

TEST(ParameterCount, IsThePublishedOne) {
  const std::map<std::string, std::int64_t> published{
      {"gpt2-124m", 124'439'808},  // sums over the tensors of the released checkpoints
      {"gpt2-355m", 354'823'168},  {"gpt2-774m", 774'030'080},  {"gpt2-1.5b", 1'557'611'200},
      {"llama-1b", 1'100'048'384}, {"llama-8b", 8'030'261'248},
  };
  for (const auto& [name, count] : published)
    EXPECT_EQ(parameter_count(forward_graph(model_file("configs/models/" + name + ".toml"), 1, false)), count)
        << name;
}

std::int64_t gpt_parameters(std::int64_t h, std::int64_t layers, std::int64_t vocabulary,
                            std::int64_t sequence) {
  return layers * (12 * h * h + 13 * h) + (vocabulary + sequence + 2) * h;
}

/// Exact: L (12 H^2 + 13 H) in the blocks, V H in the table, S H positions, 2 H in the final norm. The
/// printed numbers count a bias per word (V), which GPT does not have, but neither positions nor the final
/// norm; and one bias of H for queries, keys and values together where there are three.
TEST(ParameterCount, OfTheNineGptSizesIsThatOfThePaperUpToWhatItCountsOtherwise) {
  struct Row {
    const char* name;
    std::int64_t model, layers;
    double printed;  ///< billions, four digits
  };
  constexpr std::int64_t vocabulary = 51200, sequence = 1024;
  for (const Row& row :
       {Row{"125m", 768, 12, 0.1244}, Row{"350m", 1024, 24, 0.3547}, Row{"760m", 1536, 24, 0.7586},
        Row{"1.3b", 2048, 24, 1.3134}, Row{"2.6b", 2560, 32, 2.6486}, Row{"6.7b", 4096, 32, 6.6537},
        Row{"15b", 5120, 48, 15.3644}, Row{"39b", 8192, 48, 39.0785}, Row{"76b", 10240, 60, 76.0286}}) {
    const Graph graph =
        forward_graph(model_file(std::string("configs/models/gpt-") + row.name + ".toml"), 1, false);
    const std::int64_t h = row.model, count = parameter_count(graph);
    EXPECT_EQ(count, gpt_parameters(h, row.layers, vocabulary, sequence)) << row.name;
    const std::int64_t paper = count - (sequence + 2) * h + vocabulary - 2 * h * row.layers;
    EXPECT_NEAR(static_cast<double>(paper) / 1e9, row.printed, 5.1e-5) << row.name;
  }
}

/// 175 billion by its name, 174.6 with this vocabulary and these positions.
TEST(ParameterCount, OfGpt175BIsThatOfItsShape) {
  const std::int64_t count =
      parameter_count(forward_graph(model_file("configs/models/gpt-175b.toml"), 1, false));
  EXPECT_EQ(count, gpt_parameters(12288, 96, 51200, 2048));
  EXPECT_NEAR(static_cast<double>(count) / 1e9, 175, 0.5);
}

/// Extents of the queries' weights: [model, heads, width of a head].
Shape queries(const std::string& file) {
  const ModelDefinition model = model_file("configs/models/" + file + ".toml");
  const Graph graph = forward_graph(model, model.training.group_samples, false);
  for (const State& state : graph.states)
    if (state.name.ends_with(".query")) return value_of(graph, state.value).type.shape;
  return {};
}

TEST(Heads, OfTheSizesOfTheEvaluationAreThePublishedOnes) {
  struct Row {
    const char* file;
    std::int64_t model, heads;
  };
  for (const Row& row : {Row{"gpt-125m", 768, 12}, Row{"gpt-350m", 1024, 16}, Row{"gpt-760m", 1536, 16},
                         Row{"gpt-1.3b", 2048, 32}, Row{"gpt-2.6b", 2560, 32}, Row{"gpt-6.7b", 4096, 32},
                         Row{"gpt-15b", 5120, 40}, Row{"gpt-39b", 8192, 64}, Row{"gpt-76b", 10240, 80},
                         Row{"gpt-175b", 12288, 96}, Row{"moe-380m", 768, 16}, Row{"moe-690m", 768, 16},
                         Row{"moe-1.3b", 768, 16}, Row{"moe-2.4b", 1024, 16}, Row{"moe-7.1b", 1280, 16},
                         Row{"moe-10b", 1536, 16}, Row{"moe-27b", 2048, 16}, Row{"moe-70b", 2048, 16},
                         Row{"moe-140b", 2048, 16}})
    EXPECT_EQ(queries(row.file), (Shape{row.model, row.heads, row.model / row.heads})) << row.file;
}

/// As its tables print them: V100 in 16 bits, AdamW for GPT and Adafactor for mixtures of experts.
TEST(Training, OfTheSizesOfTheEvaluationIsThePublishedOne) {
  for (const char* size : {"125m", "350m", "760m", "1.3b", "2.6b", "6.7b", "15b", "39b", "76b"}) {
    const TrainingOptions o = model_file(std::string("configs/models/gpt-") + size + ".toml").training;
    EXPECT_EQ(std::tuple(o.batch, o.sequence, o.precision, o.gradient_sum, o.optimizer),
              std::tuple(1024, 1024, Precision::f16, GradientSum::parameters, OptimizerKind::adamw))
        << size;
  }
  for (const char* size : {"380m", "690m", "1.3b", "2.4b", "7.1b", "10b", "27b", "70b", "140b"}) {
    const TrainingOptions o = model_file(std::string("configs/models/moe-") + size + ".toml").training;
    EXPECT_EQ(std::tuple(o.batch, o.sequence, o.group_samples, o.precision, o.gradient_sum, o.optimizer),
              std::tuple(1024, 1024, 2, Precision::f16, GradientSum::parameters, OptimizerKind::adafactor))
        << size;
  }
}

/// A group of samples is a micro-batch of the published plan, so that any number of devices that divides it
/// may split it.
TEST(Training, OfTheWideResnetSizesHasThePublishedMicroBatches) {
  struct Row {
    const char* size;
    std::int64_t batch, micro_batches;
  };
  for (const Row& row :
       {Row{"250m", 1536, 24}, Row{"500m", 1536, 24}, Row{"1b", 1536, 24}, Row{"2b", 1536, 24},
        Row{"4b", 1536, 32}, Row{"6.8b", 1536, 32}, Row{"13b", 1520, 38}, Row{"13b-50", 1520, 38}}) {
    const TrainingOptions o =
        model_file(std::string("configs/models/wide-resnet-") + row.size + ".toml").training;
    EXPECT_EQ(o.batch, row.batch) << row.size;
    EXPECT_EQ(o.group_samples * row.micro_batches, row.batch) << row.size;
    EXPECT_EQ(std::tuple(o.precision, o.optimizer, o.nesterov),
              std::tuple(Precision::f32, OptimizerKind::sgd, true))
        << row.size;
  }
}

/// Exact: 20 H^2 + 17 H in a dense block, 4 H^2 + 8 H + E H + 16 E H^2 in one with experts, and the rest as
/// GPT. Beside what the printed numbers of GPT count otherwise, those of the experts have biases (9 H each)
/// and no gate.
TEST(ParameterCount, OfTheNineMoeSizesIsThatOfThePaperUpToWhatItCountsOtherwise) {
  struct Row {
    const char* name;
    std::int64_t model, layers, experts;
    double printed;  ///< billions, four digits
  };
  constexpr std::int64_t vocabulary = 32000, sequence = 1024;
  for (const Row& row :
       {Row{"380m", 768, 8, 8, 0.3835}, Row{"690m", 768, 8, 16, 0.6857}, Row{"1.3b", 768, 16, 16, 1.3468},
        Row{"2.4b", 1024, 16, 16, 2.3830}, Row{"7.1b", 1280, 16, 32, 7.0696},
        Row{"10b", 1536, 16, 32, 10.1696}, Row{"27b", 2048, 16, 48, 26.6481},
        Row{"70b", 2048, 32, 64, 70.4152}, Row{"140b", 2048, 32, 128, 139.1536}}) {
    const Graph graph =
        forward_graph(model_file(std::string("configs/models/moe-") + row.name + ".toml"), 2, false);
    const std::int64_t h = row.model, e = row.experts, count = parameter_count(graph), pairs = row.layers / 2;
    EXPECT_EQ(count, pairs * (24 * h * h + 25 * h + e * h + 16 * e * h * h) + (vocabulary + sequence + 2) * h)
        << row.name;
    const std::int64_t paper =
        count - (sequence + 2) * h + vocabulary - 2 * h * row.layers + pairs * (9 * e * h - e * h);
    EXPECT_NEAR(static_cast<double>(paper) / 1e9, row.printed, 5.1e-5) << row.name;
  }
}

/// Exact: 4 H^2 + 2 H for attention and norms of each block; 3 H D in the dense one, E H + 3 H F (E + 2) in
/// each of the others, of which a token uses 6 of the E experts; 2 V H + H beside them. Both are printed in
/// billions with one decimal.
/// The larger one is nobody's; its file says what it has.
TEST(ParameterCount, OfTheFineGrainedMixturesIsThatOfDeepSeekMoe16BAndATrillion) {
  struct Row {
    const char* file;
    std::int64_t h, layers, dense, experts, inner, vocabulary, choices, shared;
    double printed, used;
  };
  for (const Row& r : {Row{"deepseek-moe", 2048, 28, 10944, 64, 1408, 102400, 6, 2, 16.4, 2.8},
                       Row{"deepseek-moe-1t", 8192, 62, 20480, 256, 2560, 129280, 8, 1, 1005.7, 53.9}}) {
    const std::int64_t count = parameter_count(
        forward_graph(model_file(std::string("configs/models/") + r.file + ".toml"), 1, false));
    const std::int64_t expert = 3 * r.h * r.inner;
    EXPECT_EQ(count, r.layers * (4 * r.h * r.h + 2 * r.h) + 3 * r.h * r.dense +
                         (r.layers - 1) * (r.experts * r.h + expert * (r.experts + r.shared)) +
                         2 * r.vocabulary * r.h + r.h)
        << r.file;
    const std::int64_t used = count - (r.layers - 1) * (r.experts - r.choices) * expert;
    EXPECT_NEAR(static_cast<double>(count) / 1e9, r.printed, 0.051) << r.file;
    EXPECT_NEAR(static_cast<double>(used) / 1e9, r.used, 0.051) << r.file;
  }
}

// 6 N + 6 L C T a token: N weights of products (the head's among them, it is tied), causal attention counted
// once, nothing for what is computed again. Norms, activations and the loss are the rest.
TEST(StepFlops, AreThoseThatSharesOfAPeakArePublishedWith) {
  const Graph graph = training_step_graph(model_file("configs/models/gpt-1.3b.toml"), 1);
  constexpr double h = 2048, layers = 24, vocabulary = 51200, tokens = 1024;
  const double weights = 12 * h * h * layers + vocabulary * h;
  const double published = tokens * (6 * weights + 6 * layers * h * tokens);
  const double ours = graph_flops(graph, Phase::forward) + graph_flops(graph, Phase::backward);
  EXPECT_GE(ours, published);
  EXPECT_LE(ours, 1.004 * published);
}

double petaflops(const std::string& file) {
  return *paper_flops(model_file("configs/models/" + file)) / 1e15;
}

TEST(PaperFlops, OfTheGptSizesAreThePrintedOnes) {
  for (const auto& [size, printed] : std::map<std::string, double>{{"350m", 3.29},
                                                                   {"760m", 6.82},
                                                                   {"1.3b", 11.64},
                                                                   {"2.6b", 23.35},
                                                                   {"6.7b", 57.6},
                                                                   {"15b", 132.5},
                                                                   {"39b", 333.7}})
    EXPECT_NEAR(petaflops("gpt-" + size + ".toml"), printed, 2e-3 * printed)
        << size;  // three digits, some cut
}

/// What is printed are FLOP/s of each GPU and seconds of a step, the latter to three digits.
TEST(PaperFlops, OfTheMoeSizesAreThoseThatThePrintedRatesAreOf) {
  struct Row {
    const char* size;
    double gpus, tflops_per_s, seconds;
  };
  for (const Row& row :
       {Row{"380m", 1, 45.46, 34.8}, Row{"690m", 2, 43.03, 18.4}, Row{"1.3b", 4, 39.92, 18.8},
        Row{"2.4b", 8, 45.76, 13.6}, Row{"10b", 16, 45.36, 14.4}, Row{"27b", 32, 38.84, 14.4},
        Row{"70b", 64, 36.55, 15.1}}) {
    const double printed = row.gpus * row.tflops_per_s * row.seconds / 1e3;
    EXPECT_NEAR(petaflops(std::string("moe-") + row.size + ".toml"), printed, 0.005 * printed) << row.size;
  }
}

/// Ours count each product three times, and no product where rows are only moved.
TEST(PaperFlops, StandBesideThoseOfTheGraph) {
  const ModelDefinition model = model_file("tests/data/tiny_gpt.toml");
  const Graph graph = training_step_graph(model, model.training.batch);
  const double ours = graph_flops(graph, Phase::forward) + graph_flops(graph, Phase::backward);
  EXPECT_GT(*paper_flops(model), ours);
  EXPECT_LT(*paper_flops(model), 2 * ours);
  EXPECT_FALSE(paper_flops(model_file("tests/data/tiny_llama.toml")));
}

/// To the four digits that are printed. The scripts of the evaluation have the largest with 50 layers, the
/// paper with 101.
TEST(ParameterCount, OfTheSevenWideResnetSizesIsThatOfThePaper) {
  const std::map<std::string, double> billions{{"250m", 0.2541},   {"500m", 0.4950}, {"1b", 1.0057},
                                               {"2b", 1.9650},     {"4b", 4.0009},   {"6.8b", 6.7277},
                                               {"13b-50", 13.2671}};
  const auto count = [](const std::string& size) {
    const ModelDefinition model = model_file("configs/models/wide-resnet-" + size + ".toml");
    return static_cast<double>(parameter_count(forward_graph(model, model.training.group_samples, false))) /
           1e9;
  };
  for (const auto& [size, printed] : billions) EXPECT_NEAR(count(size), printed, 5.1e-5) << size;
  EXPECT_NEAR(count("13b"), 12.6, 0.051);
}

/// Those of the published checkpoints have a class token and its position, where these take the mean of all
/// tokens.
TEST(ParameterCount, OfTheVitSizesIsThePublishedOneWithoutClassTokens) {
  struct Row {
    const char* file;
    std::int64_t model, published;
  };
  for (const Row& row :
       {Row{"vit-ti16", 192, 5'717'416}, Row{"vit-s16", 384, 22'050'664}, Row{"vit", 768, 86'567'656},
        Row{"vit-l16", 1024, 304'326'632}, Row{"vit-h14", 1280, 632'045'800}}) {
    const ModelDefinition model = model_file(std::string("configs/models/") + row.file + ".toml");
    EXPECT_EQ(parameter_count(forward_graph(model, 1, false)), row.published - 2 * row.model) << row.file;
  }
}

/// The names of the sizes are cut, not rounded: that of 1.8 billion has 1.884. Learned rows of time steps are
/// 1000 c more than the sinusoids of the evaluation's scripts, of whose weights the exact count is.
TEST(ParameterCount, OfTheFiveUnetSizesIsThatOfTheEvaluationAndTheRowsOfTimeSteps) {
  struct Row {
    const char* name;
    std::int64_t channels;
    double digit, printed;  ///< billions
  };
  for (const Row& row : {Row{"470m", 320, 0.01, 0.47}, Row{"1b", 480, 1, 1}, Row{"1.2b", 512, 0.1, 1.2},
                         Row{"1.8b", 640, 0.1, 1.8}, Row{"2b", 672, 1, 2}}) {
    const ModelDefinition model = model_file(std::string("configs/models/unet-") + row.name + ".toml");
    const std::int64_t c = row.channels, count = parameter_count(forward_graph(model, 1, false));
    EXPECT_EQ(count, 4599 * c * c + 791 * c + 4 + 1000 * c) << row.name;
    EXPECT_NEAR(std::floor(static_cast<double>(count) / 1e9 / row.digit) * row.digit, row.printed, 1e-9)
        << row.name;
  }
}

// As the published weights of the encoders have them, with the two rows of segments and the pooler, and
// without the head of the masked language model.
TEST(ParameterCount, OfBertSizesIsThatOfTheOriginalsWithoutSegmentsAndPoolerAndWithTheHead) {
  struct Row {
    const char* file;
    std::int64_t model, published;
  };
  for (const Row& row : {Row{"bert-tiny", 128, 4'385'920}, Row{"bert-mini", 256, 11'170'560},
                         Row{"bert-small", 512, 28'763'648}, Row{"bert-medium", 512, 41'373'184},
                         Row{"bert", 768, 109'482'240}, Row{"bert-large", 1024, 335'141'888}}) {
    const std::int64_t h = row.model, segments = 2 * h, pooler = h * h + h, head = h * h + h + 2 * h + 30522;
    const ModelDefinition model = model_file(std::string("configs/models/") + row.file + ".toml");
    EXPECT_EQ(parameter_count(forward_graph(model, 1, false)), row.published - segments - pooler + head)
        << row.file;
  }
}

}  // namespace
}  // namespace alpa
