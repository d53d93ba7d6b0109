#include "apps/sample_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "apps/file_lines.h"
#include "apps/job_ranks.h"
#include "apps/models.h"
#include "libalpa/base/error.h"
#include "libalpa/base/json.h"
#include "libalpa/checkpoint/trained_states.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/tokenizer/tokenizer.h"

namespace alpa {
namespace {

constexpr std::int64_t kByteWords = 256;

/// A prompt in each line, but for empty ones.
std::vector<std::string> prompts_in(const std::filesystem::path& path) {
  std::vector<std::string> prompts = file_lines(path);
  std::erase(prompts, "");
  if (prompts.empty())
    throw Error(ErrorKind::input, fmt::format("'{}' has empty lines alone, or none", path.string()),
                "a text file with a prompt in each line");
  return prompts;
}

std::vector<std::string> prompts_of(const SampleSettings& settings) {
  std::vector<std::string> prompts = settings.prompts;
  if (!settings.prompt_file.empty())
    for (std::string& prompt : prompts_in(settings.prompt_file)) prompts.push_back(std::move(prompt));
  if (prompts.empty())
    throw Error(ErrorKind::usage, "there is no prompt",
                "--prompt TEXT, or --prompts FILE with one in each line");
  return prompts;
}

TokenizerFile tokenizer_file(const SampleSettings& settings, std::int64_t words) {
  if (settings.tokenizer.empty() && words != kByteWords)
    throw Error(ErrorKind::usage,
                fmt::format("--tokenizer is not given, and the model's {} words are no bytes", words),
                "--tokenizer with the data that alpa-train convert made (DATA.h5 carries its tokenizer), a "
                "tokenizer.json or a SentencePiece model");
  return read_tokenizer_file(settings.tokenizer.empty() ? "bytes" : settings.tokenizer);
}

/// The ids that a model scores and a tokenizer has no text for.
std::vector<std::int32_t> ids_without_text(const Tokenizer& tokenizer, std::int64_t words) {
  const auto has_text = [&](std::int32_t id) {
    if (id >= tokenizer.vocabulary()) return false;
    try {
      tokenizer.decode(std::span(&id, 1));
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  std::vector<std::int32_t> ids;
  for (std::int32_t id = 0; id < words; ++id)
    if (!has_text(id)) ids.push_back(id);
  return ids;
}

/// Writes one text to stdout as it grows. The last character may be there in part: a tokenizer may have
/// U+FFFD for that until it is whole.
class GrowingOutput {
 public:
  GrowingOutput(const Tokenizer& tokenizer, std::vector<std::int32_t> prompt)
      : tokenizer_(tokenizer), ids_(std::move(prompt)) {}

  void add(std::int32_t token) {
    ids_.push_back(token);
    const std::string text = tokenizer_.decode(ids_);
    std::size_t whole = text.size();
    while (std::string_view(text).substr(0, whole).ends_with(kReplacement)) whole -= kReplacement.size();
    write(text.substr(0, whole));
  }
  void finish() {
    write(tokenizer_.decode(ids_));
    fmt::print("\n");
  }

 private:
  static constexpr std::string_view kReplacement = "\xef\xbf\xbd";

  void write(const std::string& text) {
    if (text.size() > written_) fmt::print("{}", text.substr(written_));
    std::fflush(stdout);
    written_ = std::max(written_, text.size());
  }

  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> ids_;
  std::size_t written_ = 0;
};

std::string text_of(const Tokenizer& tokenizer, const SampledText& text) {
  std::vector<std::int32_t> ids = text.prompt;
  ids.insert(ids.end(), text.tokens.begin(), text.tokens.end());
  return tokenizer.decode(ids);
}

std::string sampling_json(const SamplingReport& report, const SamplingSettings& settings,
                          const std::vector<std::string>& prompts, const Tokenizer& tokenizer) {
  JsonArray texts;
  for (std::size_t i = 0; i < report.texts.size(); ++i) {
    const SampledText& text = report.texts[i];
    JsonArray prompt, tokens;
    for (const std::int32_t token : text.prompt) prompt.add(token);
    for (const std::int32_t token : text.tokens) tokens.add(token);
    texts.add(JsonObject()
                  .set("prompt", prompts[i])
                  .set("text", text_of(tokenizer, text))
                  .set("prompt_tokens", prompt)
                  .set("tokens", tokens)
                  .set("log_likelihood", text.log_likelihood)
                  .set("end", text_end_words(text.end)));
  }
  return JsonObject()
             .set("format", "alpa-sample")
             .set("format_version", "1.0")
             .set("checkpoint", report.checkpoint.string())
             .set("step", report.step)
             .set("temperature", settings.choice.temperature)
             .set("top_p", settings.choice.top_p)
             .set("top_k", settings.choice.top_k)
             .set("seed", settings.seed)
             .set("seconds", report.seconds)
             .set("texts", texts)
             .text() +
         "\n";
}

int sample_model(SampleSettings settings, const ParallelRun& rank) {
  check_trained_source(settings.sampling.trained);
  const std::vector<std::string> prompts = prompts_of(settings);
  const PlannedModel planned = read_planned_model(settings.plan);
  const TextLimits limits = text_limits(planned.graph);
  const TokenizerFile file = tokenizer_file(settings, limits.words);
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(file);
  std::vector<std::vector<std::int32_t>> ids;
  for (const std::string& prompt : prompts)
    ids.push_back(tokenizer->encode(prompt, SpecialTokens::are_taken));
  settings.sampling.node = rank.session.node();
  settings.sampling.never = ids_without_text(*tokenizer, limits.words);
  const JobRanks job(settings.device, rank, nullptr, settings.file_timeout_s);
  const bool is_first = rank.session.rank() == 0;
  std::optional<GrowingOutput> output;
  const SamplingReport report =
      sample_texts(planned.plan, planned.graph, ids, end_of_text(file, *tokenizer), settings.sampling,
                   job.ranks(), rank.stop, rank.log, [&](std::size_t, std::int32_t token) {
                     if (!is_first || ids.size() > 1) return;
                     if (!output) output.emplace(*tokenizer, ids[0]);
                     output->add(token);
                   });
  if (is_first) {
    if (output)
      output->finish();
    else
      for (std::size_t i = 0; i < prompts.size(); ++i)
        fmt::print("{}{}\n", prompts.size() > 1 ? fmt::format("=== {}\n", i + 1) : "",
                   text_of(*tokenizer, report.texts[i]));
    if (!settings.json.empty())
      publish_text(settings.json, sampling_json(report, settings.sampling, prompts, *tokenizer));
  }
  const bool is_stopped =
      std::ranges::any_of(report.texts, [](const SampledText& text) { return text.end == TextEnd::stopped; });
  return is_stopped ? static_cast<int>(ErrorKind::stopped_early) : 0;
}

}  // namespace

void describe(SampleSettings& s, OptionsVisitor& visit) {
  describe(s.sampling, visit);
  describe_file_timeout(s.file_timeout_s, visit);
  describe(s.device, visit);
}

void add_sample(App& app, SampleSettings& settings) {
  SamplingSettings& sampling = settings.sampling;
  Command& command =
      app.parallel_subcommand("sample", "continue texts by a trained model, token by token",
                              [&settings](const ParallelRun& rank) { return sample_model(settings, rank); })
          .argument(
              "PLAN.h5", settings.plan,
              "plan of the model for the ranks of this job, not necessarily the one that it was trained by");
  add_trained_source(command, sampling.trained);
  command.option("--prompt", settings.prompts, "text to continue; may be given several times")
      .option("--prompts", settings.prompt_file, "file with a text to continue in each line")
      .option("--tokenizer", settings.tokenizer,
              "what made the model's data of text: the converted data itself (DATA.h5), a tokenizer.json, a "
              "SentencePiece model, or \"bytes\", which is taken where the model has 256 words",
              "TOKENIZER")
      .option("--json", settings.json, "also write texts, tokens and log-likelihoods to this file, as JSON")
      .writes()
      .options(settings)
      .may_end_with({ErrorKind::non_finite, ErrorKind::stopped_early})
      .example("alpa-train sample plan.h5 --run-dir run --prompt 'Once upon a time' --tokens 200",
               "of the newest checkpoint of a run that was trained on the bytes of a text")
      .example(
          "alpa-train sample plan.h5 --run-dir run --tokenizer data.h5 --prompts prompts.txt "
          "--temperature 0.8 --top-p 0.95 --json texts.json",
          "each line of a file, by the tokenizer that the converted data carries")
      .example(
          "mpiexec -n 4 alpa-train sample plan-4.h5 --checkpoint gpt2.h5 --tokenizer tokenizer.json "
          "--prompt 'The answer is' --temperature 0",
          "the likeliest word each time, of an imported model on 4 ranks");
}

}  // namespace alpa
