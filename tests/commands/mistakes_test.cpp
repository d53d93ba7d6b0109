// What users type by mistake, and the whole of what they are answered: tests/commands/mistakes.txt.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/commands/workplace.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;

const fs::path kTable = ALPA_SOURCE_DIR "/tests/commands/mistakes.txt";

/// "-- what it is", lines "mine.toml| ..." of a model that rests on model.toml, "$ command", the answer and
/// "[status]". Lines before the next "--" belong to none.
struct Mistake {
  std::string what, model, command, answer;
  int status = -1;

  std::string found;
  int found_status = -1;
  std::vector<std::string> left;  ///< names of files that the command should not have made
};

/// The table, with the lines between its rows.
struct Table {
  std::vector<std::pair<std::string, int>> lines;  ///< as they are, or those of a row's answer
  std::vector<Mistake> rows;
};

Table read_table() {
  Table table;
  std::ifstream file(kTable);
  bool in_answer = false;
  for (std::string line; std::getline(file, line);) {
    const int row = static_cast<int>(table.rows.size()) - 1;
    constexpr std::string_view model = "mine.toml| ";
    if (in_answer && line.starts_with('[') && line.ends_with(']')) {
      table.rows[row].status = std::stoi(line.substr(1));
      in_answer = false;
    } else if (in_answer) {
      table.rows[row].answer += line + "\n";
    } else {
      table.lines.emplace_back(line, -1);
      if (line.starts_with("-- ")) table.rows.emplace_back().what = line.substr(3);
      if (line.starts_with(model)) table.rows[row].model += line.substr(model.size()) + "\n";
      if (!line.starts_with("$ ")) continue;
      table.rows[row].command = line.substr(2);
      table.lines.emplace_back("", row);
      in_answer = true;
    }
  }
  return table;
}

void write_table(const Table& table) {
  std::ofstream file(kTable);
  for (const auto& [line, row] : table.lines)
    if (row < 0)
      file << line << "\n";
    else
      file << table.rows[row].found << "[" << table.rows[row].found_status << "]\n";
}

class Mistakes : public Workplace {
 protected:
  /// model.toml and other.toml, cluster.toml of four CPU ranks, plans of model.toml for one rank (plan.h5)
  /// and four (four.h5), other.h5 of other.toml, profile.h5 of one rank, run/ with two steps of plan.h5.
  void SetUp() override {
    write("kitchen/model.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"model\"\n");
    write("kitchen/other.toml", "base = \"" + tiny_gpt_ + "\"\nname = \"other\"\n[dimensions]\nmodel = 16\n");
    fs::copy_file(cluster_, path("kitchen/cluster.toml"));
    cook("alpa-plan model.toml --cluster cluster.toml --method serial --out plan.h5");
    cook("alpa-plan other.toml --cluster cluster.toml --method serial --out other.h5");
    cook("alpa-plan model.toml --cluster cluster.toml --method data-parallel --out four.h5");
    cook("alpa-train plan.h5 --data synthetic:64 --run-dir run --steps 2");
    cook(
        "alpa-profile model.toml --repetitions 1 --least-sample-ms 0.01 --cold-mib 1 --time-budget 0.01 "
        "--micro-batch-samples 8 --out profile.h5");
  }

  void cook(const std::string& command) const {
    const CommandResult result = run("env -C kitchen " + command);
    ASSERT_EQ(result.status, 0) << result.output;
  }

  /// In a folder of its own, in which what is in the kitchen seems to be.
  void make(Mistake& mistake, const std::string& name) const {
    const fs::path folder = path(name);
    fs::create_directory(folder);
    for (const auto& entry : fs::directory_iterator(path("kitchen")))
      fs::create_symlink(entry.path(), folder / entry.path().filename());
    if (!mistake.model.empty())
      write(name + "/mine.toml", "base = \"model.toml\"\nname = \"mine\"\n" + mistake.model);
    write(name + "/command", mistake.command + "\n");
    const CommandResult result = run("env -C " + name + " sh command");
    mistake.found = result.output;
    mistake.found_status = result.status;
    for (const std::string& made : names_in(name))
      if (made.find("new") != std::string::npos) mistake.left.push_back(made);
  }
};

// With ALPA_REGENERATE set in the environment it writes the answers anew: read them.
TEST_F(Mistakes, AreAnsweredWithThePlaceWhatWasExpectedAndWhatToTry) {
  Table table = read_table();
  ASSERT_GT(table.rows.size(), 60u);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < table.rows.size(); i = next++)
      make(table.rows[i], "row-" + std::to_string(i));
  };
  {
    const std::jthread beside(work);
    work();
  }
  if (std::getenv("ALPA_REGENERATE")) write_table(table);
  for (const Mistake& row : table.rows) {
    SCOPED_TRACE(row.what + ": " + row.command);
    EXPECT_EQ(row.found, row.answer);
    EXPECT_EQ(row.found_status, row.status);
    EXPECT_THAT(row.left, testing::IsEmpty());
    const std::size_t begin = row.found.find("error: ");
    EXPECT_NE(begin, std::string::npos);
    EXPECT_EQ(begin, row.found.rfind("error: "));
    EXPECT_THAT(row.found, AnyOf(HasSubstr("\n  try: "), HasSubstr("did you mean"), HasSubstr("; try: "),
                                 HasSubstr("; write "), HasSubstr("known here: "), HasSubstr("expected ")));
  }
}

}  // namespace
}  // namespace alpa
