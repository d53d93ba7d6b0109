#include "tests/commands/workplace.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

namespace alpa {
namespace {

constexpr double kStuck_s = 120;

std::string below_mpiexec(const std::string& command, int ranks) {
  return ranks == 1 ? command : MPIEXEC " -n " + std::to_string(ranks) + " " + command;
}

/// The beginning of a shell command in this folder, with the commands in the search path.
std::string in_folder(const std::filesystem::path& folder) {
  return "cd " + folder.string() +
         " && export HOME=/nonexistent OMP_NUM_THREADS=1 PATH=" ALPA_BIN
         ":$PATH LSAN_OPTIONS=suppressions=" ALPA_SOURCE_DIR
         "/tests/commands/leaks_of_others.txt:print_suppressions=0 && ";
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Value>
std::vector<Value> column(const std::filesystem::path& lines, const std::string& key) {
  std::vector<Value> values;
  std::ifstream file(lines);
  for (std::string line; std::getline(file, line);)
    values.push_back(nlohmann::json::parse(line).at(key).get<Value>());
  return values;
}

}  // namespace

CommandResult Workplace::run(const std::string& command, int ranks) const {
  const std::string bounded = "timeout -k 5 " + std::to_string(kStuck_s) + " ";
  return run_command(in_folder(folder_.path()) + bounded + below_mpiexec(command, ranks));
}

void Workplace::make_plan(const std::string& name, const std::string& options,
                          const std::string& model) const {
  const CommandResult result = run("alpa-plan " + (model.empty() ? tiny_gpt_ : model) + " --cluster " +
                                   cluster_ + " --out " + name + ".h5 " + options);
  ASSERT_EQ(result.status, 0) << result.output;
}

void Workplace::make_mixed_plan(const std::string& name, const std::string& model) const {
  write("mixed.toml", R"(micro_batches = 4
schedule = "1f1b"
[[stage]]
layers = 3
mesh = [2]
axes = ["data"]
[[stage]]
layers = 3
mesh = [2]
axes = ["tensor"]
)");
  // A pin is planned whatever the limit; what the search finds beside it matters nowhere here.
  make_plan(name, "--pin mixed.toml --time-limit 1", model);
}

std::string Workplace::training(const std::string& plan, const std::string& run_dir,
                                const std::string& options) const {
  return "alpa-train " + plan + ".h5 --data synthetic:64 --run-dir " + run_dir + " " + options;
}

void Workplace::train(const std::string& plan, int ranks, const std::string& run_dir,
                      const std::string& options) const {
  const CommandResult result = run(training(plan, run_dir, options), ranks);
  ASSERT_EQ(result.status, 0) << result.output;
}

void Workplace::write(const std::string& name, const std::string& text) const {
  std::filesystem::create_directories(path(name).parent_path());
  std::ofstream(path(name)) << text;
}

std::filesystem::path Workplace::checkpoint(const std::string& run_dir, int step) const {
  const std::string digits = std::to_string(step);
  return path(run_dir) / "checkpoints" / ("step-" + std::string(8 - digits.size(), '0') + digits + ".h5");
}

std::vector<std::string> Workplace::names_in(const std::string& folder) const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path(folder)))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<double> Workplace::numbers(const std::string& run_dir, const std::string& key) const {
  return column<double>(path(run_dir) / "metrics.jsonl", key);
}

std::vector<std::string> Workplace::texts(const std::string& run_dir, const std::string& key) const {
  return column<std::string>(path(run_dir) / "metrics.jsonl", key);
}

std::string Workplace::difference(const std::filesystem::path& a, const std::filesystem::path& b) const {
  const CommandResult result =
      run("h5diff --report --exclude-path /provenance " + a.string() + " " + b.string());
  return result.status == 0 ? "" : "h5diff answers " + std::to_string(result.status) + ": " + result.output;
}

RunningRanks::RunningRanks(const std::filesystem::path& folder, const std::string& command, int ranks)
    : folder_(folder) {
  for (int rank = 0; rank < ranks; ++rank) std::filesystem::remove(folder / ("rank-" + std::to_string(rank)));
  // Each rank writes its process under its rank before it becomes the command.
  const std::string announced = "sh -c 'echo $$ > rank-${PMI_RANK:-0}; exec " + command + "'";
  process_ = fork();
  if (process_ != 0) return;
  const std::string whole = in_folder(folder) + "exec " + below_mpiexec(announced, ranks) + " > log 2>&1";
  execl("/bin/sh", "sh", "-c", whole.c_str(), nullptr);
  _exit(127);
}

RunningRanks::~RunningRanks() {
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

void RunningRanks::signal(int rank, int signal) const {
  const std::filesystem::path file = folder_ / ("rank-" + std::to_string(rank));
  wait_until("rank " + std::to_string(rank) + " starts", [&] { return text_of(file).ends_with('\n'); });
  EXPECT_EQ(kill(std::stoi(text_of(file)), signal), 0) << "rank " << rank << " is gone: " << log();
}

bool RunningRanks::is_running(int rank) const {
  const std::string process = text_of(folder_ / ("rank-" + std::to_string(rank)));
  const std::string status = text_of("/proc/" + process.substr(0, process.find('\n')) + "/status");
  return !status.empty() && status.find("State:\tZ") == std::string::npos;
}

int RunningRanks::wait() {
  int status = 0;
  bool ended = false;
  wait_until("the command ends", [&] { return (ended = waitpid(process_, &status, WNOHANG) == process_); });
  if (!ended) return -1;
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string RunningRanks::log() const { return text_of(folder_ / "log"); }

void wait_until(const std::string& what, const std::function<bool()>& holds) {
  const auto begin = std::chrono::steady_clock::now();
  while (!holds()) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::minutes(1)) {
      ADD_FAILURE() << "not within a minute: " << what;
      return;
    }
    const timespec pause{0, 2'000'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace alpa
