#include "libalpa/checkpoint/run_folder.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/h5/atomic_file.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& run_dir) { return run_dir / "checkpoints"; }

std::string file_name(std::int64_t step) { return fmt::format("step-{:08}.h5", step); }

/// The step of a checkpoint's file name; nullopt for any other name.
std::optional<std::int64_t> step_of(const std::string& name) {
  constexpr std::string_view before = "step-";
  if (!name.starts_with(before)) return std::nullopt;
  std::int64_t step = -1;
  std::from_chars(name.data() + before.size(), name.data() + name.size(), step);
  return step >= 0 && name == file_name(step) ? std::optional(step) : std::nullopt;
}

bool is_partial(const std::string& name) {
  const std::size_t end = name.find(".partial-");
  return end != std::string::npos && step_of(name.substr(0, end));
}

/// Names in a folder, sorted; none where it does not exist.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    names.push_back(i->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    throw Error(ErrorKind::input, fmt::format("cannot look into '{}': {}", folder.string(), error.message()),
                "check its permissions");
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void not_writable(const fs::path& path, const std::error_code& error) {
  throw Error(ErrorKind::input, fmt::format("cannot change '{}': {}", path.string(), error.message()),
              "choose a --run-dir that you may write to");
}

/// Throws where it says another step than its name.
FoundCheckpoint checked_name(const fs::path& path, CheckpointFacts facts) {
  FoundCheckpoint found{path, std::move(facts)};
  const auto named = step_of(path.filename().string());
  if (named && *named != found.facts.step)
    throw Error(ErrorKind::input,
                fmt::format("'{}' is the checkpoint of step {}", path.string(), found.facts.step),
                "give it its own name back");
  return found;
}

FoundCheckpoint named_checkpoint(const std::string& resume, Log& log, const BytesRead& read) {
  std::error_code ignored;
  if (fs::is_directory(resume, ignored)) {
    auto found = newest_checkpoint(resume, log, read);
    if (!found)
      throw Error(ErrorKind::input, fmt::format("--resume: there is no checkpoint in '{}'", resume),
                  "give a checkpoint, or the folder of a run that has one");
    return *found;
  }
  if (!fs::exists(resume, ignored)) {
    const std::string near = nearest_name(resume, {"auto", "must", "never"});
    throw Error(ErrorKind::input,
                fmt::format("--resume: there is no file '{}'{}", resume,
                            near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near)),
                "--resume takes auto, must, never, or the path of a checkpoint");
  }
  return verified_checkpoint(resume, read);
}

}  // namespace

fs::path checkpoint_path(const fs::path& run_dir, std::int64_t step) {
  return folder_of(run_dir) / file_name(step);
}

std::vector<std::int64_t> checkpointed_steps(const fs::path& run_dir) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(folder_of(run_dir)))
    if (const auto step = step_of(name)) steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

FoundCheckpoint verified_checkpoint(const fs::path& path, const BytesRead& read) {
  return checked_name(path, verify_checkpoint(path, read));
}

std::optional<FoundCheckpoint> newest_checkpoint(const fs::path& run_dir, Log& log, const BytesRead& read) {
  const std::vector<std::int64_t> steps = checkpointed_steps(run_dir);
  if (steps.empty()) return std::nullopt;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      return verified_checkpoint(checkpoint_path(run_dir, *step), read);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::peer) throw;
      log.warning(fmt::format("passing over a checkpoint: {}", error.happened()));
    }
  }
  throw Error(ErrorKind::input,
              fmt::format("none of the {} checkpoints in '{}' can be read", steps.size(),
                          folder_of(run_dir).string()),
              "bring one back from a copy, or start afresh with --resume never");
}

std::optional<FoundCheckpoint> find_resume_point(const std::string& resume, const fs::path& run_dir, Log& log,
                                                 const BytesRead& read) {
  std::optional<FoundCheckpoint> found;
  if (resume == "auto" || resume == "must")
    found = newest_checkpoint(run_dir, log, read);
  else if (resume != "never")
    found = named_checkpoint(resume, log, read);
  if (!found && resume == "must")
    throw Error(ErrorKind::input,
                fmt::format("--resume must: there is no checkpoint in '{}'", folder_of(run_dir).string()),
                "check --run-dir, or allow a fresh start with --resume auto");
  if (found)
    log.info(fmt::format("resuming from step {} ('{}')", found->facts.step, found->path.string()));
  else
    log.info(resume == "never"
                 ? "starting afresh (--resume never)"
                 : fmt::format("starting afresh: no checkpoint in '{}'", folder_of(run_dir).string()));
  return found;
}

void check_untrained(const fs::path& run_dir) {
  std::error_code ignored;
  const fs::path metrics = run_dir / "metrics.jsonl";
  if (checkpointed_steps(run_dir).empty() && !fs::exists(metrics, ignored)) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("'{}' is the folder of a run that was trained, this one is emulated", run_dir.string()),
      "give it a --run-dir of its own");
}

void prepare_run_folder(const fs::path& run_dir, std::int64_t step, Log& log) {
  const fs::path folder = folder_of(run_dir);
  std::error_code error = make_folder(folder);
  if (error) not_writable(folder, error);
  std::vector<std::string> later;
  for (const std::string& name : names_in(folder)) {
    const auto its_step = step_of(name);
    if (its_step && *its_step > step) later.push_back(name);
    if (!is_partial(name)) continue;
    fs::remove(folder / name, error);
    if (error) not_writable(folder / name, error);
    log.info(fmt::format("removed '{}', which was never completed", (folder / name).string()));
  }
  if (later.empty()) return;
  fs::path aside;
  for (int n = 1; aside.empty() || fs::exists(aside, error); ++n)
    aside = folder / fmt::format("set-aside-{}", n);
  fs::create_directory(aside, error);
  if (error) not_writable(aside, error);
  for (const std::string& name : later) {
    fs::rename(folder / name, aside / name, error);
    if (error) not_writable(folder / name, error);
  }
  log.warning(fmt::format("moved {} of later steps than {} to '{}'",
                          count_text(std::ssize(later), "checkpoint"), step, aside.string()));
}

void keep_last(const fs::path& run_dir, std::int64_t newest, std::int64_t keep, Log& log) {
  if (keep <= 0) return;
  std::vector<std::int64_t> earlier = checkpointed_steps(run_dir);
  std::erase_if(earlier, [newest](std::int64_t step) { return step >= newest; });
  if (static_cast<std::int64_t>(earlier.size()) < keep) return;
  try {
    const fs::path path = checkpoint_path(run_dir, newest);
    checked_name(path, checkpoint_facts(path));
  } catch (const Error& error) {
    log.warning(
        fmt::format("keeping the earlier checkpoints, since the newest is damaged: {}", error.happened()));
    return;
  }
  earlier.resize(earlier.size() - static_cast<std::size_t>(keep - 1));
  for (const std::int64_t step : earlier) {
    std::error_code error;
    fs::remove(checkpoint_path(run_dir, step), error);
    if (error)
      log.warning(
          fmt::format("cannot remove '{}': {}", checkpoint_path(run_dir, step).string(), error.message()));
  }
}

}  // namespace alpa
