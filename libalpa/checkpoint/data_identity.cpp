#include "libalpa/checkpoint/data_identity.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"

namespace alpa {
namespace {

std::string content_text(const DataIdentity& data) {
  const std::string length = count_text(data.length, data.sequence > 1 ? "token" : "row");
  return data.content.empty() ? length : fmt::format("{} of content {:.8}", length, data.content);
}

std::string split_text(const DataIdentity& data) {
  const std::string held_out =
      data.evaluation.empty() ? "the rest held out" : fmt::format("evaluation data {:.8}", data.evaluation);
  return fmt::format("{} trained on, {}", count_text(data.windows, "window"), held_out);
}

std::string order_text(const DataIdentity& data) {
  return fmt::format("seed {}, windows of {}", data.seed,
                     count_text(data.sequence, data.sequence > 1 ? "token" : "row"));
}

std::string change(const char* what, const std::string& saved, const std::string& here) {
  return fmt::format("\n  {}: {} then, {} now", what, saved, saved == here ? "in another way" : here);
}

}  // namespace

std::string data_changes(const DataIdentity& saved, const DataIdentity& here) {
  const bool is_known = !saved.content.empty();
  const bool same_content = saved.length == here.length && (!is_known || saved.content == here.content);
  const bool same_sequence = !is_known || saved.sequence == here.sequence;
  // Other data, or other windows of it, are other numbers of windows too.
  const bool same_windows = !same_content || !same_sequence || saved.windows == here.windows;
  std::string changes;
  if (!same_content) {
    DataIdentity before = saved;
    if (!is_known) before.sequence = here.sequence;
    changes += change("data", content_text(before), content_text(here));
  }
  if (!is_known) return changes;
  if (saved.evaluation != here.evaluation || !same_windows)
    changes += change("split", split_text(saved), split_text(here));
  const bool same_start = saved.order == here.order || saved.windows != here.windows;
  if (saved.seed != here.seed || !same_sequence || !same_start)
    changes += change("order", order_text(saved), order_text(here));
  return changes;
}

std::string check_same_data(const std::filesystem::path& checkpoint, std::int64_t samples,
                            const DataIdentity& saved, const DataIdentity& here, bool accepted) {
  if (samples == 0) return {};
  const std::string changes = data_changes(saved, here);
  if (changes.empty())
    return !saved.content.empty()
               ? ""
               : fmt::format("'{}' does not say which data it was trained on; it is taken to be this run's",
                             checkpoint.string());
  if (!accepted)
    throw Error(
        ErrorKind::input,
        fmt::format("'{}' was trained on other samples than this run has:{}", checkpoint.string(), changes),
        fmt::format("give data, evaluation data and seed as they were; with --accept-changed-data "
                    "the run goes on with sample {} of these",
                    samples));
  return fmt::format("--accept-changed-data: the run goes on with sample {}, number {} of epoch {}:{}",
                     samples, samples % here.windows, samples / here.windows, changes);
}

}  // namespace alpa
