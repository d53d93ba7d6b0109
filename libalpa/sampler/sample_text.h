#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/base/stop_request.h"
#include "libalpa/checkpoint/trained_states.h"
#include "libalpa/plan/plan.h"
#include "libalpa/runtime/train_ranks.h"
#include "libalpa/sampler/choose_token.h"

namespace alpa {

class OptionsVisitor;

/// How texts are continued.
struct SamplingSettings {
  TrainedSource trained = {};
  std::int64_t tokens = 100;  ///< at most, after each prompt
  TokenChoice choice = {};
  std::int64_t seed = 0;
  std::int64_t at_once =
      0;  ///< prompts at most; 0: samples of the plan's micro-batch, for which there is room
  std::vector<std::int32_t> never = {};  ///< ids that are not drawn: the tokenizer has no text for them
  double progress_s = 5;                 ///< seconds between progress lines
  int node = 0;                          ///< of this rank, among the nodes of the job
};
/// The one list of the settings that are no files (libalpa/base/options.h).
void describe(SamplingSettings&, OptionsVisitor&);

/// Why a text goes on no further.
enum class TextEnd {
  as_asked,       ///< it has as many tokens as were asked for
  end_of_text,    ///< the model has ended it
  full_sequence,  ///< as many tokens as the model was trained on have no place for more
  stopped,        ///< by a signal
};
std::string text_end_words(TextEnd);

/// A prompt and what follows it.
struct SampledText {
  std::vector<std::int32_t> prompt, tokens;  ///< tokens: without end_of_text
  double log_likelihood = 0;                 ///< of these tokens, among all words at temperature 1
  TextEnd end = TextEnd::as_asked;
};

struct SamplingReport {
  std::filesystem::path checkpoint;
  std::int64_t step = 0;           ///< of the checkpoint
  std::vector<SampledText> texts;  ///< of each prompt
  double seconds = 0;              ///< of the tokens alone, those of the prompts among them
};

/// What the model of a graph takes. Throws as decoding_graph().
struct TextLimits {
  std::int64_t words = 0;     ///< ids are below
  std::int64_t sequence = 0;  ///< tokens of a text
};
TextLimits text_limits(const Graph& training);

/// Continues each prompt, token by token, some at once: by a model that was trained, on the ranks of any plan
/// of it. Tokens are drawn by (seed, prompt, place), so the same settings give the same texts, however many
/// prompts or ranks there are, where scores are the same to the bit; at temperature 0 wherever they differ by
/// less than the two best. Collective over all ranks; all get the same. `on_token(prompt, token)` is called
/// for each as it is drawn. Throws Error(usage) for a prompt without tokens, with ids that the model lacks or
/// with more than its sequence has, and what Decoder throws.
SamplingReport sample_texts(const Plan&, const Graph&, std::span<const std::vector<std::int32_t>> prompts,
                            std::optional<std::int32_t> end_of_text, const SamplingSettings&,
                            const TrainRanks&, const StopRequest&, Log&,
                            const std::function<void(std::size_t prompt, std::int32_t token)>& on_token = {});

}  // namespace alpa
