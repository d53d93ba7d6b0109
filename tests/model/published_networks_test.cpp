#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/model/models.h"

// The networks of other systems' evaluations, held to the counts that are published of them.
namespace alpa {
namespace {

Graph network(const std::string& file) {
  const ModelDefinition model = model_file("configs/models/" + file + ".toml");
  return forward_graph(model, model.training.group_samples, false);
}

/// Elements of the parameters whose names begin so.
std::int64_t parameters_below(const Graph& graph, const std::string& begin) {
  std::int64_t sum = 0;
  for (const State& state : graph.states)
    if (state.is_parameter && state.name.starts_with(begin))
      sum += element_count(value_of(graph, state.value).type.shape);
  return sum;
}

/// Sums over the tensors of torchvision's models of 1,000 classes, but for the last two.
TEST(PublishedNetworks, HaveThePublishedNumberOfParameters) {
  const std::map<std::string, std::int64_t> published{
      {"vgg-16", 138'357'544},    {"vgg-19", 143'667'240},     {"resnet-50", 25'557'032},
      {"resnet-101", 44'549'160}, {"densenet-121", 7'978'856}, {"inception-v3", 27'161'264},
      {"googlenet", 13'004'888},  {"ncf", 31'832'577},         {"lm1b", 822'752'126},
  };
  for (const auto& [file, count] : published) EXPECT_EQ(parameter_count(network(file)), count) << file;
}

/// Without the classifiers on the side, which training alone has.
TEST(PublishedNetworks, WithoutTheirSidesAreTheNetworksThatClassify) {
  for (const auto& [file, count] :
       std::map<std::string, std::int64_t>{{"inception-v3", 23'834'568}, {"googlenet", 6'624'904}}) {
    const Graph graph = network(file);
    EXPECT_EQ(parameter_count(graph) - parameters_below(graph, "auxiliary"), count) << file;
  }
}

/// Each class has 4,096 weights and a bias. Poseidon's Table 3 prints 229 million.
TEST(PublishedNetworks, OfVgg19TheOneFor22KHasAsManyMoreParametersAsMoreClassesTake) {
  EXPECT_EQ(parameter_count(network("vgg19-22k")),
            parameter_count(network("vgg-19")) + (21'841 - 1'000) * (4'096 + 1));
}

/// Four tables; a perceptron of 256, 256, 128 and 64 numbers; a score of 128 numbers.
TEST(PublishedNetworks, OfNcfAreTablesButForAPerceptronAndAScore) {
  const Graph graph = network("ncf");
  EXPECT_EQ(parameters_below(graph, "embedding."), (138'493 + 26'744) * (64 + 128));
  EXPECT_EQ(parameters_below(graph, "perceptron"), 256 * 257 + 128 * 257 + 64 * 129);
  EXPECT_EQ(parameters_below(graph, "head."), 64 + 64 + 1);
}

/// Parallax's Table 1 prints 813.3 million in what has a row for each word, and 9.4 million in the rest.
TEST(PublishedNetworks, OfLm1bHaveRowsOfWordsAndAnLstmWithAProjection) {
  const Graph graph = network("lm1b");
  const std::int64_t rows = parameters_below(graph, "embedding.") + parameters_below(graph, "head.");
  EXPECT_EQ(rows, 793'470 * (2 * 512 + 1));
  EXPECT_EQ(parameters_below(graph, "lstm."), 4 * 2048 * (512 + 512 + 1) + 2048 * 512);
  EXPECT_NEAR(static_cast<double>(rows) / 1e6, 813.3, 0.051);
  EXPECT_NEAR(static_cast<double>(parameter_count(graph) - rows) / 1e6, 9.4, 0.051);
}

}  // namespace
}  // namespace alpa
