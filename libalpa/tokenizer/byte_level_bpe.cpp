#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/tokenizer/added_tokens.h"
#include "libalpa/tokenizer/composed_text.h"
#include "libalpa/tokenizer/split_pattern.h"
#include "libalpa/tokenizer/tokenizer_json.h"
#include "libalpa/tokenizer/tokenizer_kinds.h"
#include "libalpa/tokenizer/utf8.h"
#include "libalpa/tokenizer/word_tokens.h"

namespace alpa {
namespace {

constexpr std::array<std::string_view, 5> ends_of_text{"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>",
                                                       "<\xef\xbd\x9c"
                                                       "end\xe2\x96\x81"
                                                       "of\xe2\x96\x81"
                                                       "sentence\xef\xbd\x9c>"};

/// What encoders share.
struct BpeRules {
  explicit BpeRules(ByteLevelBpe& bpe)
      : space_before(bpe.space_before),
        composes(bpe.composes),
        merges{bpe.bytes, BytePairs(bpe.pairs), {}},
        added_to_text(bpe.added, SpecialTokens::are_text),
        added(bpe.added, SpecialTokens::are_taken) {
    for (SplitStep& step : bpe.splits) {
      patterns.emplace_back(step.pattern);
      steps.push_back(std::move(step));
    }
    if (!bpe.whole_words_are_tokens) return;
    for (std::size_t id = 0; id < bpe.tokens.size(); ++id)
      if (bpe.tokens[id]) merges.whole.emplace(*bpe.tokens[id], static_cast<std::int32_t>(id));
    for (const AddedToken& token : bpe.added) merges.whole.erase(token.text);
  }

  std::vector<SplitStep> steps;
  std::vector<SplitPattern> patterns;  // of the steps
  std::optional<std::size_t> space_before;
  bool composes;
  WordMerges merges;
  AddedTokens added_to_text, added;
};

/// Text goes through stages, each of which gives the next one pieces: at added tokens, at bytes that are no
/// UTF-8, at the matches of each pattern; words are merged. A stage behind which text may follow takes
/// only what that does not change, and says how much it took.
class BpeEncoder final : public TokenEncoder {
 public:
  BpeEncoder(const BpeRules& rules, const AddedTokens& added)
      : rules_(rules), added_(added), words_(rules.merges) {
    for (const SplitPattern& pattern : rules.patterns) matches_.emplace_back(pattern);
    takes_whole_documents_ = rules.patterns.empty() || rules.patterns[0].looks_behind() || added.take_space();
  }

  void add(std::string_view text, std::vector<std::int32_t>& ids) override {
    if (rules_.composes) {
      uncomposed_ += text;
      compose(composed_part(uncomposed_));
    } else {
      pending_ += text;
    }
    // What waits for its end is not looked through at each piece anew.
    if (!takes_whole_documents_ && pending_.size() >= look_at_) take(ids, true);
    const std::size_t held = pending_.size() + uncomposed_.size();
    // It was looked through when it was half as long at least, and no word ended.
    if (!takes_whole_documents_ && held > 2 * most_word_bytes) throw long_word();
    if (held > most_held_bytes)
      throw Error(
          ErrorKind::input,
          fmt::format(
              "more than {} MiB of a document without its end, and this tokenizer takes each as a whole",
              most_held_bytes >> 20),
          "documents of their own, e.g. JSON lines with one in each");
  }

  void end(std::vector<std::int32_t>& ids) override {
    compose(uncomposed_.size());
    take(ids, false);
    look_at_ = 0;
  }

 private:
  void compose(std::size_t bytes) {
    if (bytes == 0) return;
    pending_ += composed_text(std::string_view(uncomposed_).substr(0, bytes));
    uncomposed_.erase(0, bytes);
  }

  void take(std::vector<std::int32_t>& ids, bool text_may_follow) {
    std::string_view left = pending_;
    for (;;) {
      const AddedTokens::Place token = added_.find(left, text_may_follow);
      const bool ends = token.is_there || (!text_may_follow && token.begin == left.size());
      const std::size_t taken = take_text(left.substr(0, token.begin), !ends, ids);
      if (!token.is_there) {
        left.remove_prefix(taken);
        break;
      }
      ids.push_back(token.id);
      left.remove_prefix(token.end);
      at_start_ = true;
    }
    pending_.erase(0, pending_.size() - left.size());
    look_at_ = 2 * pending_.size();
    if (!text_may_follow) at_start_ = true;
  }

  /// Of text without added tokens.
  std::size_t take_text(std::string_view text, bool text_may_follow, std::vector<std::int32_t>& ids) {
    std::size_t taken = 0;
    while (taken < text.size()) {
      const std::string_view left = text.substr(taken);
      const std::size_t valid = utf8_prefix(left);
      std::size_t invalid = valid;
      while (invalid < left.size() && utf8_character(left.substr(invalid)) == 0) ++invalid;
      const bool undecided = text_may_follow && invalid == left.size();
      const bool cut_short =
          begins_utf8_character(left.substr(valid));  // nothing, or what more text completes
      const std::size_t took =
          valid == 0 ? 0 : take_pieces(left.substr(0, valid), 0, undecided && cut_short, ids);
      taken += took;
      if (undecided || took < valid) break;
      if (invalid == valid) break;
      words_.append(left.substr(valid, invalid - valid), ids);
      taken += invalid - valid;
      at_start_ = true;
    }
    return taken;
  }

  /// Of a piece that goes through the patterns from `step` on.
  std::size_t take_pieces(std::string_view text, std::size_t step, bool text_may_follow,
                          std::vector<std::int32_t>& ids) {
    if (rules_.space_before == step && !text.starts_with(' ') &&
        (step > 0 || std::exchange(at_start_, false))) {
      const std::string with_space = " " + std::string(text);
      const std::size_t taken = cut_pieces(with_space, step, text_may_follow, ids);
      if (taken > 0) return taken - 1;
      at_start_ = true;
      return 0;
    }
    const std::size_t taken = cut_pieces(text, step, text_may_follow, ids);
    if (step == 0) at_start_ = at_start_ && taken == 0;
    return taken;
  }

  std::size_t cut_pieces(std::string_view text, std::size_t step, bool text_may_follow,
                         std::vector<std::int32_t>& ids) {
    if (step == rules_.steps.size()) {
      words_.append(text, ids);
      return text.size();
    }
    const bool is_last = step + 1 == rules_.steps.size() && rules_.space_before != step + 1;
    const auto give = [&](std::size_t begin, std::size_t end, bool kept) {
      if (begin == end || !kept) return;
      const std::string_view piece = text.substr(begin, end - begin);
      if (is_last)
        words_.append(piece, ids);
      else
        take_pieces(piece, step + 1, false, ids);
    };
    PatternMatches& matches = matches_[step];
    const SplitStep& cut = rules_.steps[step];
    std::size_t taken = 0;
    while (taken < text.size()) {
      const PatternMatches::Found found = matches.next(text, taken, text_may_follow);
      if (found == PatternMatches::Found::more_decides) return taken;
      const bool is_match = found == PatternMatches::Found::match;
      const std::size_t begin = is_match ? matches.begin() : text.size();
      const std::size_t end = is_match ? matches.end() : text.size();
      give(taken, begin, cut.keeps_the_others);
      give(begin, end, cut.keeps_matches);
      taken = end;
    }
    return taken;
  }

  const BpeRules& rules_;
  const AddedTokens& added_;
  WordTokens words_;
  std::vector<PatternMatches> matches_;
  bool takes_whole_documents_;
  std::string uncomposed_;  ///< what is to be composed yet
  std::string pending_;
  std::size_t look_at_ = 0;
  bool at_start_ = true;  ///< of a text between added tokens
};

class ByteLevelTokenizer final : public Tokenizer {
 public:
  explicit ByteLevelTokenizer(ByteLevelBpe bpe)
      : rules_(bpe), tokens_(std::move(bpe.tokens)), added_(std::move(bpe.added)) {
    for (const std::string_view text : ends_of_text)
      if (!end_of_text_) end_of_text_ = special_token(text);
  }

  std::unique_ptr<TokenEncoder> encoder(SpecialTokens special) const override {
    return std::make_unique<BpeEncoder>(
        rules_, special == SpecialTokens::are_text ? rules_.added_to_text : rules_.added);
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= vocabulary() || !tokens_[static_cast<std::size_t>(id)])
        throw Error(ErrorKind::input,
                    fmt::format("no token has the id {}: {}, below {}", id, description(), vocabulary()),
                    "the tokenizer that made the tokens");
      text += *tokens_[static_cast<std::size_t>(id)];
    }
    return text;
  }

  std::int64_t vocabulary() const override { return std::ssize(tokens_); }

  std::optional<std::int32_t> special_token(std::string_view text) const override {
    const auto found = std::find_if(added_.begin(), added_.end(), [text](const AddedToken& token) {
      return token.special && token.text == text;
    });
    return found == added_.end() ? std::nullopt : std::optional(found->id);
  }

  std::optional<std::int32_t> end_of_text() const override { return end_of_text_; }

  std::string description() const override {
    const auto count =
        std::count_if(tokens_.begin(), tokens_.end(), [](const auto& token) { return token.has_value(); });
    return fmt::format("byte-level BPE, {} tokens", count);
  }

 private:
  BpeRules rules_;
  std::vector<std::optional<std::string>> tokens_;
  std::vector<AddedToken> added_;
  std::optional<std::int32_t> end_of_text_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_level_bpe(const TokenizerFile& file) {
  return in_step(fmt::format("reading tokenizer '{}'", file.name),
                 [&] { return std::make_unique<ByteLevelTokenizer>(read_tokenizer_json(file)); });
}

}  // namespace alpa
