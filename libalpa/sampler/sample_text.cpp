#include "libalpa/sampler/sample_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/options.h"
#include "libalpa/base/philox.h"
#include "libalpa/base/units.h"
#include "libalpa/checkpoint/trained_states.h"
#include "libalpa/kernels/element_types.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/program/text.h"
#include "libalpa/runtime/job_machines.h"
#include "libalpa/runtime/stoppable_work.h"
#include "libalpa/sampler/decoder.h"
#include "libalpa/sampler/decoding_plan.h"

namespace alpa {
namespace {

void check_prompts(std::span<const std::vector<std::int32_t>> prompts, const TextLimits& limits) {
  if (prompts.empty()) throw Error(ErrorKind::usage, "there is no prompt", "--prompt TEXT");
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<std::int32_t>& prompt = prompts[i];
    if (prompt.empty())
      throw Error(ErrorKind::usage, fmt::format("prompt {} is empty", i + 1),
                  "a text of one token or more; a line break for any beginning");
    if (std::ssize(prompt) > limits.sequence)
      throw Error(ErrorKind::usage,
                  fmt::format("prompt {} has {}, and the model takes sequences of {}", i + 1,
                              count_text(std::ssize(prompt), "token"), limits.sequence),
                  "a shorter prompt, e.g. the end of this one");
    const auto is_unknown = [&](std::int32_t id) { return id < 0 || id >= limits.words; };
    if (const auto unknown = std::ranges::find_if(prompt, is_unknown); unknown != prompt.end())
      throw Error(ErrorKind::usage,
                  fmt::format("prompt {} has token {}, and the model's vocabulary has ids from 0 to {}",
                              i + 1, *unknown, limits.words - 1),
                  "the --tokenizer that made the data that the model was trained on");
  }
}

/// Some of the texts as they grow, from prompt `first` on; what a step is given of each.
class GrowingTexts {
 public:
  GrowingTexts(std::span<const std::vector<std::int32_t>> prompts, std::size_t first,
               std::optional<std::int32_t> end_of_text, const SamplingSettings& settings,
               const Decoder& decoder)
      : first_(first),
        end_of_text_(end_of_text),
        settings_(settings),
        sequence_(decoder.sequence()),
        document_end_(decoder.document_end()),
        key_(philox_key(static_cast<std::uint64_t>(settings.seed), hash64("sampled tokens"))) {
    for (const std::vector<std::int32_t>& prompt : prompts) {
      texts_.push_back({prompt, {}});
      is_open_.push_back(settings.tokens > 0);
      if (settings.tokens > 0)
        last_place_ = std::max(last_place_, std::min(std::ssize(prompt) + settings.tokens - 1, sequence_));
    }
    document_places_.resize(texts_.size(), 0);
  }

  std::size_t size() const { return texts_.size(); }
  bool are_done() const { return std::ranges::count(is_open_, true) == 0; }
  std::int64_t last_place() const { return last_place_; }  ///< one past it, if none ends before

  /// The token of each text at a place, for all from 0 on in turn, and where it is in its document.
  void give(std::int64_t place, std::span<std::int32_t> tokens, std::span<std::int32_t> places) {
    std::ranges::fill(places, -1);
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (!is_open_[i]) continue;
      tokens[i] = token_at(i, place);
      places[i] = document_places_[i]++;
      if (tokens[i] == document_end_) document_places_[i] = 0;
    }
  }

  /// Whether a token is to be drawn after that at a place.
  bool draws(std::size_t i, std::int64_t place) const { return is_open_[i] && place + 1 >= length(i); }
  bool draws_any(std::int64_t place) const {
    for (std::size_t i = 0; i < texts_.size(); ++i)
      if (draws(i, place)) return true;
    return false;
  }

  /// That token, by the scores of text i; nullopt: it ends the text.
  std::optional<std::int32_t> draw(std::size_t i, std::int64_t place, std::span<const float> scores) {
    SampledText& text = texts_[i];
    offered_.assign(scores.begin(), scores.end());
    for (const std::int32_t word : settings_.never) offered_[static_cast<std::size_t>(word)] = -INFINITY;
    const PhiloxBlock drawn = philox(key_, first_ + i, static_cast<std::uint64_t>(place));
    const std::int32_t token =
        choose_token(offered_, settings_.choice, static_cast<double>(drawn.word[0]) * 0x1p-32);
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

  std::size_t first_;
  std::optional<std::int32_t> end_of_text_;
  const SamplingSettings& settings_;
  std::int64_t sequence_, last_place_ = 0;
  std::optional<std::int32_t> document_end_;
  std::vector<std::int32_t> document_places_;  ///< [text] of its next token
  std::uint64_t key_;
  std::vector<SampledText> texts_;
  std::vector<bool> is_open_;  ///< to be continued
  std::vector<float> offered_;
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
  visit.field(
      "at_once", s.at_once,
      "prompts at once, at most; 0: as many as a micro-batch of the plan has samples, for which there is "
      "room wherever it trains",
      at_least(0));
  visit.field("progress_s", s.progress_s, "seconds between progress lines", at_least(0));
}

TextLimits text_limits(const Graph& training) {
  const DecodingGraph decoding = decoding_graph(training, op_catalog(), 1);
  return {decoding.vocabulary, decoding.sequence};
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
  check_program(plan, graph);
  check_element_types(ranks.device, graph);
  const std::int64_t shares = sample_shares(plan, graph), texts = std::ssize(prompts);
  const std::int64_t at_once =
      std::min(texts, settings.at_once > 0 ? settings.at_once : std::max(plan.micro_batch_samples, shares));
  const std::int64_t samples = at_once < shares ? at_once : (at_once + shares - 1) / shares * shares;
  Decoder decoder(plan, graph, samples, ranks);
  check_prompts(prompts, {decoder.vocabulary(), decoder.sequence()});
  const std::unique_ptr<Stream> control = ranks.host.make_stream();
  SamplingReport report;
  report.checkpoint = trained_checkpoint(settings.trained, ranks, *control, log);
  report.step = decoder.load(report.checkpoint, log).step;
  log.info(fmt::format("{}: step {} ('{}'), {}, {} at once, of at most {} more", plan.model_name, report.step,
                       report.checkpoint.string(), count_text(texts, "text"), at_once,
                       count_text(settings.tokens, "token")));

  std::vector<GrowingTexts> groups;
  std::int64_t places_to_do = 0;
  for (std::size_t first = 0; first < prompts.size(); first += static_cast<std::size_t>(at_once)) {
    const auto group =
        prompts.subspan(first, std::min(prompts.size() - first, static_cast<std::size_t>(at_once)));
    groups.emplace_back(group, first, end_of_text, settings, decoder);
    places_to_do += groups.back().last_place();
  }
  StoppableWork work("place", places_to_do, settings.progress_s, ranks, stop, log);
  const auto words = static_cast<std::size_t>(decoder.vocabulary());
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(samples), 0), places(tokens.size());
  std::int64_t drawn = 0;
  const auto drawn_text = [&] {
    return fmt::format("{:.4g} tokens/s", static_cast<double>(drawn) / std::max(work.seconds(), 1e-9));
  };
  for (std::size_t g = 0; g < groups.size(); ++g) {
    GrowingTexts& growing = groups[g];
    if (work.is_stopped()) growing.stop();
    for (std::int64_t place = 0; !growing.are_done(); ++place) {
      growing.give(place, tokens, places);
      decoder.run(tokens, places);
      if (growing.draws_any(place)) {
        const std::span<const float> scores = decoder.scores();
        for (std::size_t i = 0; i < growing.size(); ++i) {
          if (!growing.draws(i, place)) continue;
          ++drawn;
          const auto token = growing.draw(i, place, scores.subspan(i * words, words));
          if (token && on_token) on_token(g * static_cast<std::size_t>(at_once) + i, *token);
        }
      }
      work.piece_done(drawn_text, growing.are_done() ? growing.last_place() - place - 1 : 0);
      if (work.is_stopped()) growing.stop();
    }
    for (SampledText& text : growing.take()) report.texts.push_back(std::move(text));
  }
  report.seconds = work.seconds();
  const auto full = std::ranges::count(report.texts, TextEnd::full_sequence, &SampledText::end);
  if (full > 0)
    log.info(fmt::format("{} {} as many tokens as {} sequence of {} takes", count_text(full, "text"),
                         full == 1 ? "has" : "have", full == 1 ? "its" : "their", decoder.sequence()));
  log.info(
      fmt::format("{} in {}, {}", count_text(drawn, "token"), seconds_text(report.seconds), drawn_text()));
  return report;
}

}  // namespace alpa
