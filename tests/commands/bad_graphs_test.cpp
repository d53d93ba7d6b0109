// Files of graphs that are none, or do not fit the model, given to the commands that read graphs: the exit
// status, the one message, which names the sample, and that nothing is half-written.
#include <gmock/gmock.h>

#include "libalpa/h5/file.h"
#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// The commands that look at data, with graphs.toml, of tests/data/tiny_tree_lstm.toml: groups of two samples
/// with room for 14 vertices of 2 children each.
const std::string
    kTrainsOnGraphs = "alpa-train plan.h5 --data bad.h5 --threads 1 --steps 2 --run-dir new",
    kPlansForGraphs =
        "alpa-plan graphs.toml --cluster cluster.toml --method serial --data bad.h5 --out new.h5",
    kProfilesGraphs = "alpa-profile graphs.toml --threads 1 --data bad.h5 --out new.h5";

/// Sixteen samples, of which the twelfth is bad.
struct BadGraph {
  const char* name;
  std::vector<std::int64_t> parents;  ///< of its vertices
  std::string says;
  /// Whether it is a graph that a plan may be made for: as others come with it, there is room on average.
  bool may_be_planned_for = false;
  /// Pairs of a child and its parent, where the file has these and no parents.
  std::vector<std::int64_t> edges = {};
};

void PrintTo(const BadGraph& graph, std::ostream* out) { *out << graph.name; }

const std::vector<BadGraph> bad_graphs{
    {"Cycle",
     {1, 0, -1},
     "'/parents': sample 11, vertex 1: its parent is 0, expected a vertex that comes after it"},
    {"ParentOutOfRange", {2, 3, -1}, "'/parents': sample 11, vertex 1: its parent is 3, expected 0 to 2"},
    {"ParentBelowNone",
     {2, -7, -1},
     "'/parents': sample 11, vertex 1: its parent is -7, expected 0 to 2, or -1"},
    {"ChildAfterItsParent",
     {-1, 0, 0},
     "'/parents': sample 11, vertex 1: its parent is 0, expected a vertex that comes"},
    {"Empty", {}, "'/offsets': sample 11 has no vertices, expected at least one"},
    {"MoreChildren",
     {3, 3, 3, -1},
     "'/parents': sample 11, vertex 3: it has more than 2 children, which the model takes"},
    {"MoreVertices",
     {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, -1},
     "the largest of them, sample 11, has 15",
     true},
    {"CycleOfEdges",
     {},
     "'/edges': sample 11, vertex 2: its parent is 0, expected a vertex that comes after it",
     false,
     {0, 1, 1, 2, 2, 0}},
    {"EdgeTwice", {}, "'/edges': sample 11, vertex 2: two edges make 1 its child", false, {1, 2, 1, 2}},
};

class BadGraphs : public Workplace, public testing::WithParamInterface<BadGraph> {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(cluster_, path("cluster.toml"));
    write("graphs.toml",
          "base = \"" ALPA_SOURCE_DIR "/tests/data/tiny_tree_lstm.toml\"\nname = \"graphs\"\n");
    make_plan("plan", "--devices 2 --method data-parallel --micro-batches 1", "graphs.toml");
    write_data();
    before_ = names_in(".");
  }

  void write_data() const {
    const bool has_edges = !GetParam().edges.empty();
    std::vector<std::int64_t> offsets{0}, parents, edges, edge_offsets{0};
    for (int sample = 0; sample < 16; ++sample) {
      const auto append = [&](const std::vector<std::int64_t>& good, const std::vector<std::int64_t>& bad,
                              std::vector<std::int64_t>& to) {
        const std::vector<std::int64_t>& own = sample == 11 ? bad : good;
        to.insert(to.end(), own.begin(), own.end());
      };
      const std::vector<std::int64_t> tree{2, 2, -1};
      append(tree, has_edges ? tree : GetParam().parents, parents);
      append({0, 2, 1, 2}, GetParam().edges, edges);
      offsets.push_back(std::ssize(parents));
      edge_offsets.push_back(std::ssize(edges) / 2);
    }
    const std::vector<std::int64_t> zeros(parents.size());
    H5Writer file(path("bad.h5").string(), "somebody-else", "1.0");
    const auto column = [&](const char* name, const std::vector<std::int64_t>& values) {
      file.column(name, std::span<const std::int64_t>(values), "1");
    };
    column("/offsets", offsets);
    column("/tokens", zeros);
    column("/labels", zeros);
    if (has_edges) {
      column("/edge_offsets", edge_offsets);
      file.array("/edges", std::span<const std::int64_t>(edges), {std::ssize(edges) / 2, 2}, "1");
    } else {
      column("/parents", parents);
    }
    file.publish();
  }

  void expect_refused(const std::string& command, int ranks) const {
    const CommandResult result = run(command, ranks);
    EXPECT_EQ(result.status, 3) << result.output;
    EXPECT_THAT(result.output,
                AllOf(HasSubstr("bad.h5'"), HasSubstr(GetParam().says), HasSubstr("\n  try: ")));
    const std::size_t told = result.output.find("error: ");
    EXPECT_NE(told, std::string::npos) << result.output;
    EXPECT_EQ(told, result.output.rfind("error: ")) << result.output;
    for (const char* report : {"Sanitizer", "runtime error", "Assertion", "BAD TERMINATION"})
      EXPECT_THAT(result.output, Not(HasSubstr(report)));
    EXPECT_EQ(names_in("."), before_) << command;
  }

 private:
  std::vector<std::string> before_;
};

TEST_P(BadGraphs, AreRefusedByEveryCommandAndLeaveNothing) {
  expect_refused(kTrainsOnGraphs, 2);
  if (GetParam().may_be_planned_for) return;
  expect_refused(kPlansForGraphs, 1);
  expect_refused(kProfilesGraphs, 1);
}

INSTANTIATE_TEST_SUITE_P(Table, BadGraphs, testing::ValuesIn(bad_graphs),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace alpa
