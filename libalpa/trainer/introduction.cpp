#include "libalpa/trainer/introduction.h"

#include <fmt/core.h>

#include "libalpa/base/units.h"
#include "libalpa/trainer/learning_rate.h"

namespace alpa {

std::vector<std::string> introduction(const RunFacts& run) {
  const TrainingOptions& options = run.options;
  const BatchReader& reader = *run.data.reader;
  const int servers = run.plan.cluster.server_devices();
  const std::int64_t windows = reader.order().windows(Split::training);
  std::vector<std::string> lines{
      fmt::format("{}: {} parameters, {} on {}{}", run.plan.model_name, run.parameters, run.device,
                  count_text(run.plan.ranks(), "rank"),
                  servers > 0 ? fmt::format(", {} of which serve", servers) : ""),
      fmt::format("data: {}, {}{} a step, {} to train on: {:.3g} epochs in {}", reader.description(),
                  count_text(options.batch, "sample"),
                  run.data.tokens ? " of " + count_text(options.sequence, "token") : "",
                  count_text(windows, run.data.tokens ? "window" : "sample"),
                  static_cast<double>(run.total_steps) * static_cast<double>(options.batch) /
                      static_cast<double>(windows),
                  count_text(run.total_steps, "step")),
      fmt::format("learning rate: {}", learning_rate_text(options)),
      fmt::format("samples take {} of a rank's host memory at most, and are {}", bytes_text(run.input_bytes),
                  reader.can_read_ahead() ? "read ahead" : "not read ahead, as HDF5 has to read them")};
  if (run.evaluation_data)
    lines.push_back(fmt::format("evaluations: {}", run.evaluation_data->reader->description()));
  if (!run.lossy.empty()) lines.push_back(run.lossy);
  if (const std::string stale = staleness_text(run.plan); !stale.empty()) lines.push_back(stale);
  return lines;
}

std::vector<std::string> first_warnings(const RunFacts& run, std::int64_t evaluate_every) {
  std::vector<std::string> warnings;
  const std::int64_t windows = run.data.reader->order().windows(Split::training);
  if (windows < run.options.batch)
    warnings.push_back(fmt::format("a step takes {}, of which there are {} to train on: it takes some again",
                                   count_text(run.options.batch, "sample"), windows));
  const TrainingData& held_out = run.evaluation_data ? *run.evaluation_data : run.data;
  const std::int64_t count = held_out.reader->order().windows(Split::held_out);
  if (evaluate_every > 0 && count < run.options.batch)
    warnings.push_back(fmt::format(
        "there are no evaluations: a batch takes {}, and no more than {} held out", run.options.batch,
        count_text(count, run.data.tokens ? "window" : "sample") + (count == 1 ? " is" : " are")));
  if (std::string text = ended_schedule_text(run.options, run.total_steps); !text.empty())
    warnings.push_back(std::move(text));
  return warnings;
}

}  // namespace alpa
