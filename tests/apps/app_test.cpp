#include "apps/app.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

enum class Colour { red, green };

/// A command with one of everything, and what a command line made of it.
struct Tool {
  std::filesystem::path file, out = "plan.h5", plan;
  std::string method = "search";
  int count = 4;
  double seconds = 1.5;
  std::vector<std::int64_t> sizes;
  std::vector<std::filesystem::path> clusters;
  std::vector<double> prices;
  bool check = false;
  Colour colour = Colour::red;
  std::string ran;

  int status = 0;
  std::string output, errors;

  Tool& run(std::vector<const char*> arguments) {
    App app("alpa-tool", "does what a tool does");
    app.argument("MODEL.toml", file, "model definition")
        .option("--out", out, "plan to write")
        .option("--method", method, "how", "search|pinned")
        .option("--count", count, "how many", between(1, 8))
        .option("--seconds", seconds, "how long, in seconds", more_than(0))
        .option("--sizes", sizes, "how large, in bytes", at_least(1))
        .option("--cluster", clusters, "machines, each time others")
        .option("--price", prices, "of each", more_than(0))
        .flag("--check", check, "look only")
        .option("--colour", colour, "which",
                {{"red", Colour::red, "like fire"}, {"green", Colour::green, "like grass"}})
        .may_end_with({ErrorKind::stopped_early, ErrorKind::infeasible})
        .example("alpa-tool gpt.toml --count 2", "does it twice");
    app.subcommand("explain", "prints a plan in words").argument("PLAN.h5", plan, "the plan").runs([&] {
      ran = "explain";
    });
    app.subcommand("compare", "compares")
        .exit_statuses({{0, "same"}, {1, "different"}, {2, "error"}}, 2)
        .runs([&]() -> int { throw Error(ErrorKind::input, "no such file", "look elsewhere"); });
    app.subcommand("burst", "fails").runs([] { throw std::runtime_error("burst"); });
    arguments.insert(arguments.begin(), "alpa-tool");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    status = app.run(static_cast<int>(arguments.size()), arguments.data(), [&] { ran = "tool"; });
    output = testing::internal::GetCapturedStdout();
    errors = testing::internal::GetCapturedStderr();
    return *this;
  }
};

TEST(CommandLine, SetsWhatItNamesAndLeavesTheRest) {
  Tool tool;
  tool.run({"gpt.toml", "--count", "2", "--sizes=1,20,300", "--check", "--colour", "green"});
  EXPECT_EQ(tool.status, 0);
  EXPECT_EQ(tool.ran, "tool");
  EXPECT_EQ(tool.file, "gpt.toml");
  EXPECT_EQ(tool.out, "plan.h5");
  EXPECT_EQ(tool.count, 2);
  EXPECT_EQ(tool.seconds, 1.5);
  EXPECT_THAT(tool.sizes, ElementsAre(1, 20, 300));
  EXPECT_TRUE(tool.check);
  EXPECT_EQ(tool.colour, Colour::green);
}

TEST(CommandLine, GivesSomeOptionsSeveralTimes) {
  Tool tool;
  tool.run({"--cluster", "a.toml", "gpt.toml", "--price", "2", "--cluster=b.toml", "--price", "0.5"});
  EXPECT_EQ(tool.status, 0) << tool.errors;
  EXPECT_EQ(tool.file, "gpt.toml");  // which is no second value of the option before it
  EXPECT_THAT(tool.clusters, ElementsAre("a.toml", "b.toml"));
  EXPECT_THAT(tool.prices, ElementsAre(2, 0.5));
}

TEST(CommandLine, NamesASubcommand) {
  Tool tool;
  tool.run({"explain", "plan.h5"});
  EXPECT_EQ(tool.ran, "explain");
  EXPECT_EQ(tool.plan, "plan.h5");
}

TEST(CommandLine, RefusesWithStatus2AndSaysWhatItWants) {
  const struct {
    std::vector<const char*> arguments;
    const char* message;
  } table[] = {
      {{},
       "alpa-tool: error: MODEL.toml is missing\n  try: alpa-tool MODEL.toml [options]; --help says more"},
      {{"m.toml", "--cuont", "2"}, "unknown option '--cuont'\n  try: did you mean '--count'?"},
      {{"m.toml", "--method=x", "--counts=2"}, "unknown option '--counts'\n  try: did you mean '--count'?"},
      {{"m.toml", "-c"}, "unknown option '-c'"},
      {{"m.toml", "--price", "1", "--price", "0"}, "--price: expected a number, more than 0, found '0'"},
      {{"m.toml", "n.toml"}, "unexpected argument 'n.toml'\n  try: alpa-tool MODEL.toml [options]"},
      {{"m.toml", "--count"}, "--count: a value is missing\n  try: --count N: how many; from 1 to 8"},
      {{"m.toml", "--count="}, "--count: a value is missing"},
      {{"m.toml", "--count", "2", "--count", "3"}, "--count is given 2 times\n  try: give it once"},
      {{"m.toml", "--count", "two"},
       "--count: expected an integer, from 1 to 8, found 'two'\n  try: --count N: how many"},
      {{"m.toml", "--count", "4.0"}, "found '4.0'\n  try: --count 4"},
      {{"m.toml", "--out", "--check"}, "--out: a value is missing before '--check'\n  try: --out PATH: plan"},
      {{"m.toml", "--check=false"}, "--check takes no value, found 'false'\n  try: --check, or nothing"},
      {{"m.toml", "--batch-size", "8"}, "unknown option '--batch-size'\n  try: batch in [training]"},
      {{"m.toml", "--colour", "debug"}, "found 'debug'\n  try: did you mean '--log-level debug'?"},
      {{"show", "a.h5"}, "unknown command 'show', and there is no such file\n  try: did you mean 'explain'?"},
      {{"paint", "a.h5"}, "\n  try: alpa-tool MODEL.toml [options]; --help lists the commands"},
      {{"m.toml", "--count", "9"}, "--count: expected an integer, from 1 to 8, found '9'"},
      {{"m.toml", "--count", "2.5"}, "--count: expected an integer, from 1 to 8, found '2.5'"},
      {{"m.toml", "--seconds", "0"}, "--seconds: expected a number, more than 0, found '0'"},
      {{"m.toml", "--seconds", "nan"}, "--seconds: expected a number, more than 0, found 'nan'"},
      {{"m.toml", "--sizes", "1,,2"}, "--sizes: expected an integer, at least 1, found ''"},
      {{"m.toml", "--out", ""}, "--out: expected a text that is not empty, found ''"},
      {{""}, "MODEL.toml: expected a text that is not empty, found ''"},
      {{"m.toml", "--colour", "blue"}, "--colour: expected red|green, found 'blue'"},
      {{"explain"}, "PLAN.h5 is missing"},
      {{"exlpain", "a.h5"},
       "unknown command 'exlpain', and there is no such file\n  try: did you mean 'explain'?"},
      {{"explain", "a.h5", "--count", "2"}, "unknown option '--count'"},
      {{"--help-as", "page"}, "--help-as: expected text|man|bash, found 'page'"},
      {{"m.toml", "--log-level", "loud"}, "--log-level: expected debug|info|warning|error|off, found 'loud'"},
  };
  for (const auto& row : table) {
    Tool tool;
    tool.run(row.arguments);
    EXPECT_EQ(tool.status, 2) << row.message;
    EXPECT_THAT(tool.errors, HasSubstr(row.message));
    EXPECT_EQ(tool.ran, "") << row.message;
  }
}

TEST(Help, ShowsPurposeUsageOptionsDefaultsExitStatusesAndExamples) {
  Tool tool;
  tool.run({"--help"});
  EXPECT_EQ(tool.status, 0);
  EXPECT_EQ(tool.errors, "");
  EXPECT_THAT(
      tool.output,
      AllOf(HasSubstr("alpa-tool: does what a tool does"), HasSubstr("usage: alpa-tool MODEL.toml [options]"),
            HasSubstr("--seconds X               how long, in seconds; more than 0 [1.5]"),
            HasSubstr("--method search|pinned    how [search]"),
            HasSubstr("--colour red|green        which [red]"), HasSubstr("green        like grass"),
            HasSubstr("explain      prints a plan in words"), HasSubstr("  75  stopped early"),
            HasSubstr("examples:\n  alpa-tool gpt.toml --count 2\n      does it twice")));
}

TEST(Help, ListsTheExitStatusesThatTheCommandMayHave) {
  Tool tool;
  tool.run({"--help"});
  EXPECT_THAT(tool.output,
              HasSubstr("exit status:\n  0   done\n  1   failed while running\n"
                        "  2   wrong usage of the command line\n  3   bad or missing input\n"
                        "  4   no feasible plan\n  75  stopped early, with what there was by then saved"));
}

TEST(Help, OfASubcommandIsItsOwn) {
  Tool tool, same;
  tool.run({"compare", "--help"});
  EXPECT_EQ(same.run({"compare", "-h"}).output, tool.output);
  EXPECT_THAT(tool.output, AllOf(HasSubstr("usage: alpa-tool compare"),
                                 HasSubstr("exit status:\n  0   same\n  1   different\n  2   error\n"),
                                 Not(HasSubstr("  75  "))));
}

TEST(Version, SaysHowTheProgramWasBuilt) {
  Tool tool;
  tool.run({"--version"});
  EXPECT_EQ(tool.status, 0);
  for (const char* line : {"alpa-tool 0.", "compiler: ", "MPI: MPICH", "HDF5: 1.", "CBC: 2.", "oneDNN: 2.",
                           "CUDA: ", "NCCL: ", "vector instructions: "})
    EXPECT_THAT(tool.output, HasSubstr(line));
}

TEST(HelpInAnotherForm, IsAManualPageOfTheCommandAndAllBelowIt) {
  Tool tool;
  tool.run({"--help-as", "man"});
  EXPECT_EQ(tool.status, 0);
  for (const char* part :
       {".TH ALPA-TOOL 1 20", "alpa\\-tool \\- does what a tool does\n",
        "\\fBalpa\\-tool\\fR \\fIMODEL.toml\\fR [\\fIoptions\\fR]\n",
        "\\fBalpa\\-tool explain\\fR \\fIPLAN.h5\\fR",
        ".TP\n\\fB\\-\\-colour\\fR \\fIred\\:|green\\fR\nwhich [red]\n.RS\n.TP\n\\fBred\\fR\nlike fire\n",
        ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n", ".TP\n75\nstopped early",
        "does it twice:\n.RS 4\n.nf\n\\fBalpa\\-tool gpt.toml \\-\\-count 2\\fR\n",
        ".SH \"ALPA\\-TOOL COMPARE\"\ncompares\n", ".TP\n1\ndifferent\n"})
    EXPECT_THAT(tool.output, HasSubstr(part));
}

TEST(HelpInAnotherForm, CompletesNamesOptionsAndWords) {
  Tool tool;
  tool.run({"--help-as", "bash"});
  EXPECT_EQ(tool.status, 0);
  for (const char* part :
       {"complete -F _alpa_tool alpa-tool\n", "explain | compare | burst) ",
        "' --colour')\n      words='red green'\n", "' --method')\n      words='search pinned'\n",
        "' --log-level' | \\\n      'explain --log-level' | \\\n",
        "explain) words='--log-level --help --version' ;;",
        "--cluster --price --check --colour --log-level --help --version --help-as' ;;"})
    EXPECT_THAT(tool.output, HasSubstr(part));
  EXPECT_THAT(tool.output, Not(HasSubstr("' --out'")));  // a file, as what has no words
}

TEST(Failure, IsToldWithItsHintAndBecomesTheStatusOfItsKind) {
  Tool tool;
  tool.run({"burst"});
  EXPECT_EQ(tool.status, 1);
  EXPECT_EQ(tool.errors, "alpa-tool: error: burst\n");
  EXPECT_EQ(tool.output, "");
}

TEST(Failure, OfACommandWithItsOwnStatusesHasThatStatus) {
  Tool tool;
  tool.run({"compare"});
  EXPECT_EQ(tool.status, 2);
  EXPECT_EQ(tool.errors, "alpa-tool: error: no such file\n  try: look elsewhere\n");
}

}  // namespace
}  // namespace alpa
