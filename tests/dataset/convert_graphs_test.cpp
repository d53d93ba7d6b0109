// Trees into HDF5, and back.
#include <gmock/gmock.h>

#include <algorithm>
#include <optional>

#include "libalpa/base/error.h"
#include "libalpa/dataset/convert.h"
#include "libalpa/dataset/graph_statistics.h"
#include "libalpa/h5/file.h"
#include "tests/dataset/small_sources.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ConvertGraphs : public SmallSources {
 protected:
  ConvertSettings treebank(const std::string& lines) const {
    ConvertSettings settings;
    settings.sources = {write("trees.txt", lines)};
    settings.from = SourceKind::treebank;
    settings.out = path("trees.h5");
    settings.order = RowOrder::kept;
    return settings;
  }

  void run(const ConvertSettings& settings) {
    convert(settings, {"as tested", "test", "", "", "", "", ""}, log_);
  }

  std::vector<VertexGraph> graphs(const std::string& name) const {
    const auto source = open_graphs(path(name).string(), {1 << 20, 1 << 20, 1 << 20});
    std::vector<VertexGraph> read(static_cast<std::size_t>(source->samples()));
    for (std::size_t i = 0; i < read.size(); ++i) source->read(static_cast<std::int64_t>(i), read[i]);
    return read;
  }

  H5Reader file(const std::string& name) const { return H5Reader(path(name), "alpa-data", "1.0"); }
};

TEST_F(ConvertGraphs, ReadsATreebankWithChildrenBeforeTheirParents) {
  run(treebank("(3 (2 It) (4 (2 's) (4 good)))\n"));
  const VertexGraph tree = graphs("trees.h5").at(0);
  EXPECT_THAT(tree.labels, ElementsAre(2, 2, 4, 4, 3));
  EXPECT_THAT(tree.tokens, ElementsAre(1, 2, 3, -1, -1));
  EXPECT_THAT(tree.children_of(3), ElementsAre(1, 2));
  EXPECT_THAT(tree.children_of(4), ElementsAre(0, 3));
  EXPECT_THAT(file("trees.h5").strings("/words"), ElementsAre("<unk>", "It", "'s", "good"));
  EXPECT_THAT(file("trees.h5").int64s("/parents"), ElementsAre(4, 3, 3, 4, -1));
  EXPECT_EQ(file("trees.h5").int64_attribute("/tokens", "vocabulary"), 4);
  EXPECT_EQ(file("trees.h5").int64_attribute("/labels", "classes"), 5);
  EXPECT_EQ(file("trees.h5").text_attribute("/provenance", "command"), "as tested");
}

TEST_F(ConvertGraphs, NumbersWordsByHowOftenTheyOccurThenByWhichComesFirst) {
  run(treebank("(0 (0 b) (0 a))\n(0 (0 c) (0 (0 a) (0 B)))\n"));
  EXPECT_THAT(file("trees.h5").strings("/words"), ElementsAre("<unk>", "a", "b", "c", "B"));
  EXPECT_THAT(file("trees.h5").int64s("/tokens"), ElementsAre(2, 1, -1, 3, 1, 4, -1, -1));
}

TEST_F(ConvertGraphs, KeepsVerticesOfOneChildAndOfMany) {
  run(treebank("(1 (2 (3 one)))\n(0 (0 a) (0 b) (0 c))\n(7 alone)\n"));
  const std::vector<VertexGraph> trees = graphs("trees.h5");
  EXPECT_THAT(trees.at(0).labels, ElementsAre(3, 2, 1));
  EXPECT_THAT(trees.at(0).children, ElementsAre(0, 1));
  EXPECT_THAT(trees.at(1).children_of(3), ElementsAre(0, 1, 2));
  EXPECT_EQ(trees.at(2).vertices(), 1);
}

TEST_F(ConvertGraphs, PartsWordsByAsciiSpacesAlone) {
  run(
      treebank("  (0  (0 8\xc2\xa0"
               "1\\/2 )(1 -LRB-)) \r\n\n   \n"));
  EXPECT_THAT(file("trees.h5").strings("/words"), ElementsAre("<unk>",
                                                              "8\xc2\xa0"
                                                              "1\\/2",
                                                              "-LRB-"));
  EXPECT_EQ(graphs("trees.h5").size(), 1u) << "empty lines are none";
}

TEST_F(ConvertGraphs, TakesTheWordsOfAnotherFile) {
  run(treebank("(0 (0 a) (0 (0 a) (0 b)))\n"));
  ConvertSettings other = treebank("(0 (0 b) (1 (0 new) (0 a)))\n");
  other.words = path("trees.h5");
  other.out = path("other.h5");
  run(other);
  EXPECT_THAT(file("other.h5").int64s("/tokens"), ElementsAre(2, 0, 1, -1, -1))
      << "0: a word that is not there";
  EXPECT_THAT(file("other.h5").strings("/words"), ElementsAre("<unk>", "a", "b"));
  EXPECT_EQ(file("other.h5").int64_attribute("/tokens", "vocabulary"), 3);
  other.words = path("trees.txt");
  EXPECT_THAT([&] { run(other); }, ThrowsMessage<Error>(HasSubstr("trees.txt' is not an HDF5 file")));
}

TEST_F(ConvertGraphs, NamesLineAndColumnOfWhatIsNoTree) {
  const auto expect_refused = [&](const std::string& line, const std::string& says) {
    EXPECT_THAT([&] { run(treebank("(0 a)\n" + line + "\n(0 b)\n")); },
                ThrowsMessage<Error>(
                    AllOf(HasSubstr("trees.txt', line 2: column " + says), HasSubstr("try: give a tree on"))))
        << line;
  };
  expect_refused("a (0 b)", "1: a tree begins with '('");
  expect_refused("(x b)", "2: expected a label, an integer from 0 on");
  expect_refused("( 0 b)", "2: expected a label");
  expect_refused("(-1 b)", "2: expected a label");
  expect_refused("(2b c)", "2: expected a label");
  expect_refused("(99999999999 b)", "2: expected a label");
  expect_refused("(0 a b)", "6: a second word at one vertex");
  expect_refused("(0 a (1 b))", "6: a child beside the word of a vertex");
  expect_refused("(0 (1 a) b)", "10: a word beside the children of a vertex");
  expect_refused("(0 (1 ) (1 b))", "7: a vertex with neither word nor children");
  expect_refused("(0)", "3: a vertex with neither word nor children");
  expect_refused("(0 (1 a) (1 b)", "15: the line ends before 1 ')'");
  expect_refused("(0", "3: the line ends before 1 ')'");
  expect_refused("(0 a))", "6: something follows the tree");
  expect_refused("(0 a) (0 b)", "7: something follows the tree");
  expect_refused("(0 \x1b[1m)", "4: expected a word of 1 to 255 bytes of UTF-8 without control characters");
  expect_refused("(0 \xff)", "4: expected a word");
  expect_refused("(0 " + std::string(256, 'a') + ")", "4: expected a word");
  EXPECT_FALSE(std::filesystem::exists(path("trees.h5")));
}

TEST_F(ConvertGraphs, IsNotStoppedByDeepTrees) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "(0";
  deep += " a" + std::string(100'000, ')');
  run(treebank(deep));
  EXPECT_EQ(stored_statistics(path("trees.h5"))->greatest_height(), 99'999);
}

TEST_F(ConvertGraphs, HoldsOutTheLastWithTheSameWordsAndStatisticsOfTheirOwn) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "(0 (1 w" + std::to_string(i) + ") (" + std::to_string(i) + " x))\n";
  ConvertSettings settings = treebank(lines);
  settings.hold_out = 0.25;
  run(settings);
  EXPECT_EQ(graphs("trees.h5").size(), 75u);
  const std::vector<VertexGraph> held_out = graphs("trees-held-out.h5");
  EXPECT_EQ(held_out.size(), 25u);
  EXPECT_EQ(held_out[0].labels[1], 75) << "in their order";
  EXPECT_EQ(file("trees.h5").strings("/words"), file("trees-held-out.h5").strings("/words"));
  EXPECT_EQ(file("trees-held-out.h5").int64_attribute("/labels", "classes"), 100);
  EXPECT_EQ(stored_statistics(path("trees-held-out.h5"))->samples(), 25);

  settings.order = RowOrder::shuffled;
  run(settings);
  std::vector<std::int32_t> second_labels;
  for (const char* name : {"trees.h5", "trees-held-out.h5"})
    for (const VertexGraph& tree : graphs(name)) second_labels.push_back(tree.labels[1]);
  EXPECT_FALSE(std::ranges::is_sorted(second_labels));
  std::ranges::sort(second_labels);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(second_labels[i], i) << "each is in one of them";
}

TEST_F(ConvertGraphs, StoresWhatIsDrawnAsItIsDrawn) {
  ConvertSettings settings;
  settings.out = path("drawn.h5");
  settings.order = RowOrder::kept;
  const GraphLimits limits{18280, 5, 2};
  for (const char* name : {"synthetic-trees:100", "complete-trees:16:10", "chains:100"}) {
    settings.sources = {name};
    run(settings);
    const auto stored = open_graphs(path("drawn.h5").string(), limits), drawn = open_graphs(name, limits);
    ASSERT_EQ(stored->samples(), drawn->samples());
    VertexGraph read, expected;
    for (std::int64_t sample = 0; sample < drawn->samples(); ++sample) {
      stored->read(sample, read);
      drawn->read(sample, expected);
      EXPECT_EQ(read, expected) << name << " " << sample;
      EXPECT_EQ(stored->vertices(sample), drawn->vertices(sample));
      EXPECT_EQ(stored->labelled(sample), drawn->labelled(sample));
    }
    EXPECT_TRUE(stored->can_read_ahead());
    EXPECT_EQ(stored_statistics(path("drawn.h5")), graph_statistics(*drawn));
  }
  const std::vector<VertexGraph> of_seed_0 = graphs("drawn.h5");
  settings.seed = 1;
  run(settings);
  EXPECT_NE(graphs("drawn.h5"), of_seed_0);
}

TEST_F(ConvertGraphs, MakesFilesThatTheToolsOfHdf5Read) {
  run(treebank("(3 (2 It) (4 (2 's) (4 good)))\n(1 bad)\n"));
  const std::string name = path("trees.h5").string();
  EXPECT_THAT(run_command("h5ls -r " + name).output,
              AllOf(HasSubstr("/offsets                 Dataset {3}"),
                    HasSubstr("/parents                 Dataset {6}"),
                    HasSubstr("/words                   Dataset {5}"), HasSubstr("/statistics/sizes")));
  EXPECT_THAT(run_command("h5dump -d /words " + name).output, HasSubstr("\"It\", \"'s\", \"good\", \"bad\""));
  EXPECT_THAT(run_command("h5dump -d /offsets " + name).output, HasSubstr("(0): 0, 5, 6"));
  file("trees.h5").verify();  // every checksum
}

TEST_F(ConvertGraphs, RefusesSettingsThatDoNotFit) {
  const auto expect_refused = [&](ConvertSettings settings, ErrorKind kind, const std::string& says) {
    try {
      run(settings);
      ADD_FAILURE() << says;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(says));
      EXPECT_EQ(error.kind(), kind) << says;
    }
  };
  ConvertSettings settings = treebank("(0 a)\n");
  settings.divide = 2;
  expect_refused(settings, ErrorKind::usage, "holds trees, not samples");
  settings = treebank("\n\n");
  expect_refused(settings, ErrorKind::input, "trees.txt' is empty");
  settings.from = SourceKind::text;
  settings.words = path("trees.txt");
  expect_refused(settings, ErrorKind::usage, "trees.txt' is not a treebank");
  settings.words.clear();
  settings.from = SourceKind::drawn_graphs;
  expect_refused(settings, ErrorKind::input, "nothing that is drawn is called '");
  settings.sources = {"synthetic-trees:none"};
  expect_refused(settings, ErrorKind::input, "cannot draw graphs from 'synthetic-trees:none'");
  H5Writer no_words(path("other.h5"), "alpa-data", "1.0");
  no_words.column("/words", std::vector<std::string>{"a"});
  no_words.publish();
  settings = treebank("(0 a)\n");
  settings.words = path("other.h5");
  expect_refused(settings, ErrorKind::input, "'/words' does not begin with '<unk>'");
}

}  // namespace
}  // namespace alpa
