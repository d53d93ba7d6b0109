#include "libalpa/sampler/sample_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/clock.h"
#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/options.h"
#include "libalpa/base/philox.h"
#include "libalpa/base/units.h"
#include "libalpa/checkpoint/trained_states.h"
#include "libalpa/kernels/element_types.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/runtime/job_machines.h"
#include "libalpa/sampler/decoder.h"
#include "libalpa/sampler/decoding_plan.h"

namespace alpa {
namespace {

void check_prompts(std::span<const std::vector<std::int32_t>> prompts, const Decoder& decoder) {
  if (prompts.empty()) throw Error(ErrorKind::usage, "there is no prompt", "--prompt TEXT");
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<std::int32_t>& prompt = prompts[i];
    if (prompt.empty())
      throw Error(ErrorKind::usage, fmt::format("prompt {} is empty", i + 1),
                  "a text of one token or more; a line break for any beginning");
    if (std::ssize(prompt) > decoder.sequence())
      throw Error(ErrorKind::usage,
                  fmt::format("prompt {} has {}, and the model takes sequences of {}", i + 1,
                              count_text(std::ssize(prompt), "token"), decoder.sequence()),
                  "a shorter prompt, e.g. the end of this one");
    const auto is_unknown = [&](std::int32_t id) { return id < 0 || id >= decoder.vocabulary(); };
    if (const auto unknown = std::ranges::find_if(prompt, is_unknown); unknown != prompt.end())
      throw Error(ErrorKind::usage,
                  fmt::format("prompt {} has token {}, and the model's vocabulary has ids from 0 to {}",
                              i + 1, *unknown, decoder.vocabulary() - 1),
                  "the --tokenizer that made the data that the model was trained on");
  }
}

/// The texts as they grow; what a step is given of each.
class GrowingTexts {
 public:
  GrowingTexts(std::span<const std::vector<std::int32_t>> prompts, std::optional<std::int32_t> end_of_text,
               const SamplingSettings& settings, std::int64_t sequence)
      : end_of_text_(end_of_text),
        settings_(settings),
        sequence_(sequence),
        key_(philox_key(static_cast<std::uint64_t>(settings.seed), hash64("sampled tokens"))) {
    for (const std::vector<std::int32_t>& prompt : prompts) {
      texts_.push_back({prompt, {}});
      is_open_.push_back(settings.tokens > 0);
    }
  }

  bool are_done() const { return std::ranges::count(is_open_, true) == 0; }
  std::int64_t drawn() const { return drawn_; }

  /// The token of each text at a place, and where that is.
  void give(std::int64_t place, std::span<std::int32_t> tokens, std::span<std::int32_t> places) const {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      tokens[i] = is_open_[i] ? token_at(i, place) : 0;
      places[i] = is_open_[i] ? static_cast<std::int32_t>(place) : -1;
    }
  }

  /// What follows the token at that place, by the scores of text i.
  std::optional<std::int32_t> draw(std::size_t i, std::int64_t place, std::span<const float> scores) {
    if (!is_open_[i] || place + 1 < length(i)) return std::nullopt;
    SampledText& text = texts_[i];
    const PhiloxBlock drawn = philox(key_, i, static_cast<std::uint64_t>(place));
    const std::int32_t token =
        choose_token(scores, settings_.choice, static_cast<double>(drawn.word[0]) * 0x1p-32);
    ++drawn_;
    if (token == end_of_text_) {
      close(i, TextEnd::end_of_text);
      return std::nullopt;
    }
    text.log_likelihood += log_likelihood(scores, token);
    text.tokens.push_back(token);
    if (std::ssize(text.tokens) == settings_.tokens)
      close(i, TextEnd::as_asked);
    else if (length(i) > sequence_)
      close(i, TextEnd::full_sequence);
    return token;
  }

  void stop() {
    for (std::size_t i = 0; i < texts_.size(); ++i)
      if (is_open_[i]) close(i, TextEnd::stopped);
  }

  std::vector<SampledText> take() { return std::move(texts_); }

 private:
  std::int64_t length(std::size_t i) const {
    return std::ssize(texts_[i].prompt) + std::ssize(texts_[i].tokens);
  }
  std::int32_t token_at(std::size_t i, std::int64_t place) const {
    const auto at = static_cast<std::size_t>(place), prompt = texts_[i].prompt.size();
    return at < prompt ? texts_[i].prompt[at] : texts_[i].tokens[at - prompt];
  }
  void close(std::size_t i, TextEnd end) {
    texts_[i].end = end;
    is_open_[i] = false;
  }

  std::optional<std::int32_t> end_of_text_;
  const SamplingSettings& settings_;
  std::int64_t sequence_;
  std::uint64_t key_;
  std::vector<SampledText> texts_;
  std::vector<bool> is_open_;  ///< to be continued
  std::int64_t drawn_ = 0;
};

}  // namespace

void describe(SamplingSettings& s, OptionsVisitor& visit) {
  visit.field("tokens", s.tokens, "tokens to add to each prompt, at most", at_least(0));
  visit.field("temperature", s.choice.temperature,
              "by which scores are divided: below 1 what is likely becomes likelier; 0: the likeliest word "
              "each time",
              at_least(0));
  visit.field("top_p", s.choice.top_p,
              "draw among the most likely words alone that have this share of all likelihood together",
              between(0, 1));
  visit.field("top_k", s.choice.top_k, "draw among so many of the most likely words alone; 0: all",
              at_least(0));
  visit.field("seed", s.seed, "of the draws: the same gives the same text");
  visit.field("progress_s", s.progress_s, "seconds between progress lines", at_least(0));
}

std::int64_t words_of_model(const Graph& training) {
  return decoding_graph(training, op_catalog(), 1).vocabulary;
}

std::string text_end_words(TextEnd end) {
  switch (end) {
    case TextEnd::as_asked:
      return "length";
    case TextEnd::end_of_text:
      return "end-of-text";
    case TextEnd::full_sequence:
      return "sequence";
    case TextEnd::stopped:
      break;
  }
  return "stopped";
}

SamplingReport sample_texts(const Plan& plan, const Graph& graph,
                            std::span<const std::vector<std::int32_t>> prompts,
                            std::optional<std::int32_t> end_of_text, const SamplingSettings& settings,
                            const TrainRanks& ranks, const StopRequest& stop, Log& log,
                            const std::function<void(std::size_t, std::int32_t)>& on_token) {
  const std::string warning =
      check_machines(plan, gather_machines(settings.node, ranks.device, ranks.host, ranks.control));
  if (!warning.empty() && ranks.control.rank() == 0) log.warning(warning);
  check_element_types(ranks.device, graph);
  const std::int64_t shares = sample_shares(plan, graph), texts = std::ssize(prompts);
  const std::int64_t samples = texts < shares ? texts : (texts + shares - 1) / shares * shares;
  Decoder decoder(plan, graph, samples, ranks);
  check_prompts(prompts, decoder);
  const std::unique_ptr<Stream> control = ranks.host.make_stream();
  SamplingReport report;
  report.checkpoint = trained_checkpoint(settings.checkpoint, settings.run_dir, ranks, *control, log);
  report.step = decoder.load(report.checkpoint, log).step;
  log.info(fmt::format("{}: step {} ('{}'), {} of at most {} more", plan.model_name, report.step,
                       report.checkpoint.string(), count_text(texts, "text"),
                       count_text(settings.tokens, "token")));

  GrowingTexts growing(prompts, end_of_text, settings, decoder.sequence());
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(samples), 0),
      places(static_cast<std::size_t>(samples), -1);
  const auto words = static_cast<std::size_t>(decoder.vocabulary()),
             drawn = settings.words > 0 ? std::min(words, static_cast<std::size_t>(settings.words)) : words;
  const double begun_s = monotonic_s();
  double reported_s = begun_s;
  for (std::int64_t place = 0; !growing.are_done(); ++place) {
    growing.give(place, tokens, places);
    const std::span<const float> scores = decoder.run(tokens, places);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const auto token = growing.draw(i, place, scores.subspan(i * words, drawn));
      if (token && on_token) on_token(i, *token);
    }
    std::int32_t asked = stop.is_asked() ? 1 : 0;
    ranks.control.all_reduce(*control, &asked, 1, DType::i32, Reduction::max);
    if (asked != 0) growing.stop();
    const double now_s = monotonic_s();
    if (now_s - reported_s < settings.progress_s || growing.are_done()) continue;
    reported_s = now_s;
    const double each_s = (now_s - begun_s) / static_cast<double>(place + 1);
    std::int64_t longest = 0;
    for (const std::vector<std::int32_t>& prompt : prompts) longest = std::max(longest, std::ssize(prompt));
    const std::int64_t last = std::min(longest + settings.tokens, decoder.sequence());
    log.info(fmt::format("place {}/{}  {:.4g} tokens/s  left {} at most", place + 1, last,
                         static_cast<double>(growing.drawn()) / (now_s - begun_s),
                         seconds_text(each_s * static_cast<double>(last - place - 1))));
  }
  report.seconds = monotonic_s() - begun_s;
  report.texts = growing.take();
  const auto full = std::ranges::count(report.texts, TextEnd::full_sequence, &SampledText::end);
  if (full > 0)
    log.info(fmt::format("{} {} as many tokens as {} sequence of {} takes", count_text(full, "text"),
                         full == 1 ? "has" : "have", full == 1 ? "its" : "their", decoder.sequence()));
  log.info(fmt::format("{} in {}, {:.4g} tokens/s", count_text(growing.drawn(), "token"),
                       seconds_text(report.seconds),
                       static_cast<double>(growing.drawn()) / std::max(report.seconds, 1e-9)));
  return report;
}

}  // namespace alpa
