#include "libalpa/tokenizer/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/core.h>
#include <pcre2.h>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

constexpr std::size_t first_stack_bytes = 32 << 10, most_stack_bytes = 64 << 20;

std::string pcre2_says(int status) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(status, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

template <auto release>
struct Release {
  template <class Pointer>
  void operator()(Pointer* pointer) const {
    release(pointer);
  }
};

}  // namespace

struct SplitPattern::Compiled {
  std::unique_ptr<pcre2_code, Release<pcre2_code_free>> code;
  bool looks_behind = false;
};

SplitPattern::SplitPattern(const std::string& pattern) : compiled_(std::make_unique<Compiled>()) {
  int status = 0;
  PCRE2_SIZE at = 0;
  compiled_->code.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C,
                    &status, &at, nullptr));
  if (!compiled_->code)
    throw Error(ErrorKind::input,
                fmt::format("a regular expression is damaged near byte {}: {}", at, pcre2_says(status)),
                "fetch the file again");
  std::uint32_t matches_nothing = 0, behind = 0;
  pcre2_pattern_info(compiled_->code.get(), PCRE2_INFO_MATCHEMPTY, &matches_nothing);
  pcre2_pattern_info(compiled_->code.get(), PCRE2_INFO_MAXLOOKBEHIND, &behind);
  if (matches_nothing)
    throw Error(ErrorKind::input, "a regular expression matches nothing at all, and cuts no piece",
                "fetch the file again");
  compiled_->looks_behind = behind > 0;
  // Without a compiler for this machine the matches are the same, and slower.
  pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
}

SplitPattern::~SplitPattern() = default;
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;
SplitPattern& SplitPattern::operator=(SplitPattern&&) noexcept = default;

bool SplitPattern::looks_behind() const { return compiled_->looks_behind; }

struct PatternMatches::State {
  const pcre2_code* code;
  std::unique_ptr<pcre2_match_data, Release<pcre2_match_data_free>> data;
  std::unique_ptr<pcre2_match_context, Release<pcre2_match_context_free>> context;
  std::unique_ptr<pcre2_jit_stack, Release<pcre2_jit_stack_free>> stack;
};

PatternMatches::PatternMatches(const SplitPattern& pattern) : state_(std::make_unique<State>()) {
  state_->code = pattern.compiled_->code.get();
  state_->data.reset(pcre2_match_data_create_from_pattern(state_->code, nullptr));
  state_->context.reset(pcre2_match_context_create(nullptr));
  state_->stack.reset(pcre2_jit_stack_create(first_stack_bytes, most_stack_bytes, nullptr));
  pcre2_jit_stack_assign(state_->context.get(), nullptr, state_->stack.get());
}

PatternMatches::~PatternMatches() = default;
PatternMatches::PatternMatches(PatternMatches&&) noexcept = default;
PatternMatches& PatternMatches::operator=(PatternMatches&&) noexcept = default;

PatternMatches::Found PatternMatches::next(std::string_view text, std::size_t from, bool text_may_follow) {
  const int status = pcre2_match(state_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                 PCRE2_NO_UTF_CHECK | (text_may_follow ? PCRE2_PARTIAL_HARD : 0),
                                 state_->data.get(), state_->context.get());
  if (status > 0) return Found::match;
  if (status == PCRE2_ERROR_NOMATCH) return text_may_follow ? Found::more_decides : Found::none;
  if (status == PCRE2_ERROR_PARTIAL) return Found::more_decides;
  throw Error(ErrorKind::input,
              fmt::format("the tokenizer's regular expression gives up on a text of {} bytes: {}",
                          text.size(), pcre2_says(status)),
              "break up its longest words");
}

std::size_t PatternMatches::begin() const { return pcre2_get_ovector_pointer(state_->data.get())[0]; }
std::size_t PatternMatches::end() const { return pcre2_get_ovector_pointer(state_->data.get())[1]; }

}  // namespace alpa
