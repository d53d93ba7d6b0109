// No command destroys what it reads, or replaces what exists unasked.
#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::string_literals;

class Outputs : public Workplace {
 protected:
  std::string bytes(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// Files of these names, all with other texts.
  void write_all(const std::vector<std::string>& names) const {
    for (const std::string& name : names) write(name, "this is " + name);
  }

  /// Runs a command that is to be refused before it reads anything, with every file as it was.
  void expect_refused(const std::string& command, const std::string& says, int ranks = 1) const {
    std::map<std::string, std::string> before;
    for (const std::string& name : names_in("."))
      if (std::filesystem::is_regular_file(path(name))) before[name] = bytes(name);
    const CommandResult result = run(command, ranks);
    EXPECT_EQ(result.status, 2) << command << "\n" << result.output;
    EXPECT_THAT(result.output, HasSubstr(says)) << command;
    std::map<std::string, std::string> after;
    for (const std::string& name : names_in("."))
      if (std::filesystem::is_regular_file(path(name))) after[name] = bytes(name);
    EXPECT_TRUE(after == before) << "files differ after: " << command;
  }
};

TEST_F(Outputs, AreNoInputsOfAnyCommand) {
  write_all({"m.toml", "c.toml", "pin.toml", "profile.h5", "missing.txt", "plan.h5", "text.txt", "held.txt",
             "w.safetensors", "c.h5", "labels", "wiki.bin", "wiki.idx", "run/checkpoints/c.h5",
             "train-labels-idx1", "train-images-idx3"});
  write("w.json", R"({"weight_map": {"a": "w.safetensors"}})");
  std::filesystem::create_symlink("text.txt", path("link"));
  const std::vector<std::pair<std::string, std::string>> commands = {
      {"alpa-plan m.toml --cluster c.toml --out m.toml", "MODEL.toml"},
      {"alpa-plan m.toml --cluster c.toml --out c.toml", "--cluster"},
      {"alpa-plan m.toml --profile profile.h5 --out profile.h5", "--profile"},
      {"alpa-plan m.toml --cluster c.toml --pin pin.toml --out ./pin.toml", "--pin"},
      {"alpa-plan m.toml --cluster c.toml --out new.h5 --missing m.toml", "MODEL.toml"},
      {"alpa-plan simulate plan.h5 --trace plan.h5", "PLAN.h5"},
      {"alpa-plan simulate plan.h5 --profile profile.h5 --trace profile.h5", "--profile"},
      {"alpa-profile m.toml --out m.toml", "MODEL.toml"},
      {"alpa-profile m.toml --missing missing.txt --out missing.txt", "--missing"},
      {"alpa-train plan.h5 --data text.txt --run-dir plan.h5", "PLAN.h5"},
      {"alpa-train plan.h5 --data text.txt --run-dir run --trace link", "--data"},
      {"alpa-train plan.h5 --data wiki --run-dir run --trace wiki.idx", "--data"},
      {"alpa-train plan.h5 --data text.txt --evaluation-data held.txt --run-dir run --trace held.txt",
       "--evaluation-data"},
      {"alpa-train plan.h5 --data text.txt --run-dir run --trace run/checkpoints/c.h5 --resume "
       "run/checkpoints/c.h5",
       "--resume"},
      {"alpa-train import w.safetensors m.toml --out w.safetensors", "WEIGHTS.safetensors"},
      {"alpa-train import w.json m.toml --out w.safetensors", "WEIGHTS.safetensors"},
      {"alpa-train import w.safetensors m.toml --out m.toml", "MODEL.toml"},
      {"alpa-train export c.h5 --names gpt2 --out c.h5", "CHECKPOINT.h5"},
      {"alpa-train convert text.txt --out text.txt", "SOURCE"},
      {"alpa-train convert link --out text.txt", "SOURCE"},
      {"alpa-train convert text.txt --out new.h5 --hold-out 0.1 --hold-out-file text.txt", "SOURCE"},
      {"alpa-train convert new-held-out.h5 --out new.h5 --hold-out 0.1", "SOURCE"},
      {"alpa-train convert train-images-idx3 --out train-labels-idx1", "SOURCE"},
      {"alpa-train convert images --labels labels --out labels", "--labels"},
      {"alpa-train convert wiki.bin --out wiki.idx", "SOURCE"}};
  for (const auto& [command, input] : commands) {
    expect_refused(command, " is the same file as " + input + " '");
    if (!command.starts_with("alpa-profile")) expect_refused(command + " --force", " is the same file as ");
  }
  expect_refused("alpa-train convert run --out run/checkpoints/new.h5",
                 "lies in SOURCE 'run', which is read");
  expect_refused("alpa-plan m.toml --cluster c.toml --out new --missing ./new", "is the same file as --");
}

TEST_F(Outputs, ThatExistAreReplacedWhenAskedFor) {
  write_all({"old.h5", "old.json", "part-held-out.h5"});
  write("text.txt", "a text of some words, of which a tenth is held out");
  write("more.txt", "another text");
  const std::string plan = "alpa-plan " + tiny_gpt_ + " --cluster " + cluster_ + " --method serial ";
  for (const std::string& command :
       {plan + "--out old.h5", plan + "--out new.h5 --missing old.json",
        "alpa-train convert text.txt --out old.h5"s, "alpa-train import w.safetensors m.toml --out old.h5"s,
        "alpa-train export c.h5 --names gpt2 --out old.h5"s,
        "alpa-train convert text.txt --hold-out 0.1 --out part.h5"s,
        "alpa-plan simulate p.h5 --trace old.json"s})
    expect_refused(command, "exists\n  try: another name for --");
  ASSERT_EQ(run("alpa-train convert text.txt --out old.h5 --force").status, 0);
  EXPECT_THAT(run("h5ls old.h5").output, HasSubstr("tokens"));
  expect_refused("alpa-train convert more.txt --out old.h5", "--out 'old.h5' exists");
  ASSERT_EQ(run(plan + "--out old.h5 --force").status, 0);
  EXPECT_EQ(run("alpa-plan check old.h5").status, 0);
}

TEST_F(Outputs, OfEveryRankAreRefusedOnce) {
  make_plan("data", "--method data-parallel --devices 2");
  write("notes.json", "mine");
  const std::string command = training("data", "run", "--steps 4 --trace notes.json");
  expect_refused(command, "--trace 'notes.json' exists", 2);
  EXPECT_THAT(run(command, 2).output, Not(HasSubstr("rank 1")));
}

TEST_F(Outputs, OfAJobThatIsSubmittedAgainAreItsOwn) {
  make_plan("serial", "--method serial");
  train("serial", 1, "run", "--steps 4 --trace measured.json");
  train("serial", 1, "run", "--steps 8 --trace measured.json");
  ASSERT_EQ(run("alpa-plan simulate serial.h5 --trace planned.json").status, 0);
  expect_refused(training("serial", "run", "--steps 12 --trace planned.json"),
                 "--trace 'planned.json' exists");
  EXPECT_EQ(numbers("run", "step").size(), 8u);
}

TEST_F(Outputs, AreNoDevices) {
  write("text.txt", "a text");
  ASSERT_EQ(run("mkfifo pipe").status, 0);
  const CommandResult result = run("alpa-train convert text.txt --out pipe --force");
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.output,
              HasSubstr("cannot write 'pipe': it is not a regular file\n  try: give the name of a file"));
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe")));
}

}  // namespace
}  // namespace alpa
