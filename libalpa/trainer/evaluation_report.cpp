// What an evaluation found, for people and for programs.
#include <fmt/core.h>

#include "libalpa/base/json.h"
#include "libalpa/base/units.h"
#include "libalpa/trainer/evaluate_checkpoint.h"

namespace alpa {

std::string evaluation_text(const EvaluationReport& r) {
  std::string text = fmt::format("{:<16} '{}', step {}\n{:<16} {:.6f}\n", "checkpoint", r.checkpoint.string(),
                                 r.step, "loss", r.means.loss);
  const auto line = [&](const std::string& name, const std::string& value) {
    text += fmt::format("{:<16} {}\n", name, value);
  };
  if (r.perplexity) line("perplexity", fmt::format("{:.6g}", *r.perplexity));
  for (const NamedNumber& metric : r.means.of_model) line(metric.name, fmt::format("{:.6g}", metric.value));
  line("samples", fmt::format("{} in {}, of {} {} '{}'", r.samples, count_text(r.batches, "batch"),
                              r.samples + r.left, r.held_out ? "held out of" : "in", r.data));
  if (r.tokens > 0) line("tokens", std::to_string(r.tokens));
  line("time", fmt::format("{}, {:.4g} samples/s", seconds_text(r.seconds),
                           static_cast<double>(r.samples) / r.seconds));
  return text;
}

std::string evaluation_json(const EvaluationReport& r) {
  JsonObject json;
  json.set("format", "alpa-evaluation")
      .set("format_version", "1.0")
      .set("checkpoint", r.checkpoint.string())
      .set("step", r.step)
      .set("data", r.data)
      .set("part", r.held_out ? "held-out" : "all")
      .set("loss", r.means.loss);
  if (r.perplexity)
    json.set("perplexity", *r.perplexity);
  else
    json.set_null("perplexity");
  return json.set("metrics", numbers_json(r.means.of_model))
             .set("batches", r.batches)
             .set("samples", r.samples)
             .set("samples_left_out", r.left)
             .set("tokens", r.tokens)
             .set("seconds", r.seconds)
             .set("stopped_early", r.is_stopped)
             .text() +
         "\n";
}

}  // namespace alpa
