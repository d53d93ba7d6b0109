#include "apps/verify_checkpoints.h"

#include <fmt/core.h>

#include <cstdint>
#include <cstdio>

#include "libalpa/base/byte_progress.h"
#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/base/unreadable_file.h"
#include "libalpa/checkpoint/run_folder.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

/// The checkpoints of a run, or the one itself.
std::vector<fs::path> checkpoints_at(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return {path};
  std::vector<fs::path> files;
  for (const std::int64_t step : checkpointed_steps(path)) files.push_back(checkpoint_path(path, step));
  if (files.empty())
    throw Error(ErrorKind::input,
                fmt::format("there is no checkpoint in '{}'", (path / "checkpoints").string()),
                "the folder of a run that has saved one, or a checkpoint file");
  return files;
}

std::int64_t bytes_of(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(file, error);
  return error ? 0 : static_cast<std::int64_t>(bytes);
}

/// A run that goes on removes its earlier checkpoints meanwhile.
bool is_gone(const fs::path& file) {
  std::error_code ignored;
  return !fs::exists(file, ignored);
}

/// What a checkpoint turns out to be, in a line; whether it is not damaged.
bool is_found_good(const fs::path& file, ByteProgress& progress) {
  std::string found;
  bool is_good = true;
  try {
    const std::int64_t bytes = bytes_of(file);
    const FoundCheckpoint good = verified_checkpoint(file, [&](std::int64_t read) { progress.add(read); });
    found = fmt::format("good, step {}, {}", good.facts.step, bytes_text(bytes));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) throw;
    is_good = is_gone(file);
    found = is_good ? "removed meanwhile" : "damaged: " + error.happened();
  }
  fmt::print("{}: {}\n", file.string(), found);
  std::fflush(stdout);
  return is_good;
}

void verify_checkpoints(const std::vector<fs::path>& paths, Log& log) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths)
    for (fs::path& file : checkpoints_at(path)) {
      if (is_gone(file)) throw unreadable_file(file, "No such file or directory");
      files.push_back(std::move(file));
    }
  std::int64_t bytes = 0;
  for (const fs::path& file : files) bytes += bytes_of(file);
  ByteProgress progress(fmt::format("reading {}", count_text(std::ssize(files), "checkpoint")), bytes, log);
  std::vector<fs::path> damaged;
  for (const fs::path& file : files)
    if (!is_found_good(file, progress)) damaged.push_back(file);
  if (!damaged.empty())
    throw Error(
        ErrorKind::input,
        fmt::format("{} of {} damaged: '{}'{}", damaged.size(), count_text(std::ssize(files), "checkpoint"),
                    damaged.front().string(), damaged.size() > 1 ? ", ..." : ""),
        "a copy of it, or another checkpoint of the run: --resume auto passes over what is damaged");
}

}  // namespace

void add_verify(App& app, std::vector<fs::path>& paths) {
  app.subcommand("verify", "read every byte of checkpoints and say which of them are good")
      .arguments("CHECKPOINT", paths, "checkpoint file, or folder of a run for all of its checkpoints")
      .example("alpa-train verify run",
               "a line for each checkpoint of a run; exit status 3 where one is damaged")
      .example("alpa-train verify run/checkpoints/step-00000100.h5", "that one; what is damaged is named")
      .runs([&app, &paths] { verify_checkpoints(paths, app.log()); });
}

}  // namespace alpa
